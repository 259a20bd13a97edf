import { Inject, Injectable, Optional } from '@nestjs/common';
import { type ResolvedSessionOptions, SESSION_OPTIONS, SessionEventDispatcher } from '@nest-session/core/store';
import { ofSessionModule, SessionEventProducer } from '@nest-session/redis/internal';
import {
  MODULE,
  type ResolvedSpringSessionOptions,
  SPRING_SESSION_OPTIONS,
} from '../configuration/spring-session.options.js';
import { dataHere } from './shared-event-data.js';

/** The events of sessions that Spring has stored, for the delivery. */
@Injectable()
export class SharedEventProducer extends SessionEventProducer {
  constructor(
    // Optional, so that the error names the missing module.
    @Optional() @Inject(SessionEventDispatcher) handlers: SessionEventDispatcher | undefined,
    @Inject(SPRING_SESSION_OPTIONS) { serializer }: Pick<ResolvedSpringSessionOptions, 'serializer'>,
    @Optional() @Inject(SESSION_OPTIONS) options?: Pick<ResolvedSessionOptions, 'ids' | 'serializer'>,
  ) {
    super(ofSessionModule(handlers, MODULE), { serializer }, options);
  }

  protected override readFields(data: Readonly<Record<string, string>>): Record<string, string> {
    return dataHere(data);
  }
}
