import { Inject, Injectable, Optional } from '@nestjs/common';
import { ATTRIBUTE_FIELD, ofSessionModule, SessionEventProducer } from '@nest-session/redis/internal';
import { type ResolvedSessionOptions, SESSION_OPTIONS, SessionEventDispatcher } from '@nest-session/core/store';
import type { OwnClasses } from '../values/own-classes.js';
import { attributesHere } from '../values/spring-principal.js';
import { MODULE, type ResolvedSpringSessionOptions, SPRING_SESSION_OPTIONS } from '../spring-session.options.js';

/** The fields of a session in an event, with the names that attributes have here, and with who is signed in. */
export function dataHere(data: Readonly<Record<string, string>>, own?: OwnClasses): Record<string, string> {
  const all = Object.entries(data);
  const { attributes: here } = attributesHere(all, own);
  const attributes = [...here].map(([name, text]) => [ATTRIBUTE_FIELD + name, text] as const);
  return Object.fromEntries([...all.filter(([field]) => !field.startsWith(ATTRIBUTE_FIELD)), ...attributes]);
}

type Options = Pick<ResolvedSpringSessionOptions, 'serializer'> &
  Partial<Pick<ResolvedSpringSessionOptions, 'ownClasses'>>;

@Injectable()
export class SharedEventProducer extends SessionEventProducer {
  readonly #own: OwnClasses | undefined;

  constructor(
    // Optional, so that the error names the missing module.
    @Optional() @Inject(SessionEventDispatcher) handlers: SessionEventDispatcher | undefined,
    @Inject(SPRING_SESSION_OPTIONS) { serializer, ownClasses }: Options,
    @Optional() @Inject(SESSION_OPTIONS) options?: Pick<ResolvedSessionOptions, 'ids' | 'serializer'>,
  ) {
    super(ofSessionModule(handlers, MODULE), { serializer }, options);
    this.#own = ownClasses;
  }

  protected override readFields(data: Readonly<Record<string, string>>): Record<string, string> {
    return dataHere(data, this.#own);
  }
}
