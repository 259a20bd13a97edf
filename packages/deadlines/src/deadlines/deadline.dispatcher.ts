import { Inject, Injectable, Optional } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import {
  type HandledKind,
  NamedEventDispatcher,
  SESSION_TELEMETRY,
  type SessionTelemetry,
} from '@nest-session/core/internal';
import type { DeadlineEvent } from './deadline-event.js';
import { DEADLINE_MARKS } from './on-deadline.decorator.js';

const DEADLINES: HandledKind<DeadlineEvent> = {
  what: 'deadlines',
  module: 'DeadlineModule',
  marks: DEADLINE_MARKS,
  nameOf: ({ name }) => name,
  shown: shownDeadline,
  contextOf: ({ id: eventId, name: deadline, at, attempt, traceparent }) => ({
    type: 'deadline',
    deadline,
    eventId,
    at,
    attempt,
    traceparent,
  }),
};

/** Calls the `@OnDeadline` methods of this application. */
@Injectable()
export class DeadlineDispatcher extends NamedEventDispatcher<DeadlineEvent> {
  constructor(
    @Inject(DiscoveryService) discovery: DiscoveryService,
    @Inject(MetadataScanner) scanner: MetadataScanner,
    @Optional() @Inject(SESSION_TELEMETRY) telemetry?: SessionTelemetry,
  ) {
    super(DEADLINES, discovery, scanner, telemetry);
  }
}

/** A deadline as log lines name it: without its key, which may be a name or an address. */
export function shownDeadline({ name, id }: Pick<DeadlineEvent, 'name' | 'id'>): string {
  return `deadline ${JSON.stringify(name)} (${id})`;
}
