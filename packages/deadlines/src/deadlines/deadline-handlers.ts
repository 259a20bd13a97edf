import { Inject, Injectable, Module, Optional } from '@nestjs/common';
import { DiscoveryModule, DiscoveryService, MetadataScanner, ModulesContainer } from '@nestjs/core';
import {
  type HandledKind,
  type HandledName,
  HandlerMarks,
  NamedEventDispatcher,
  SESSION_TELEMETRY,
  type SessionTelemetry,
  startLast,
} from '@nest-session/core/internal';
import { type Deadline, type DeadlineEvent, isDeadline } from './deadline-event.js';

/** Options of `@OnDeadline`. */
export interface OnDeadlineOptions {
  /** Calls the method on every instance, with what comes while it runs. A failure is only logged. @default false */
  readonly broadcast?: boolean;
}

const DEADLINE_MARKS = new HandlerMarks<HandledName>(
  '@OnDeadline',
  'this application has no deadlines. Add DeadlineModule.forRoot() and ' +
    'RedisDeadlineModule.forRoot() of @nest-session/deadlines/redis to the imports of the root module, or ' +
    'MapDeadlineModule for a single process and for tests.',
);

/**
 * Calls a method of a provider or controller with each deadline of a kind that has come; use it several times for
 * several kinds. One instance of each group is called, at least once, in no promised order, and awaited. If the method
 * throws, the deadline is retried, and becomes a dead letter in the end. `event.id` is the same at every delivery.
 * @throws TypeError for anything but what `deadline()` returns, and for other options
 */
export function OnDeadline<T>(kind: Deadline<T>, options: OnDeadlineOptions = {}) {
  // It is undefined while its file is loaded in a circle.
  const problem = isDeadline(kind)
    ? undefined
    : `takes what deadline() returns, but got a value of type ${typeof (kind as unknown)}`;
  const markOf = (broadcast: boolean) => ({ name: kind.name, broadcast });
  return DEADLINE_MARKS.add<DeadlineEvent<Deadline<T>>>(problem, options, markOf);
}

const DEADLINES: HandledKind<DeadlineEvent> = {
  what: 'deadlines',
  module: 'DeadlineModule',
  marks: DEADLINE_MARKS,
  nameOf: ({ name }) => name,
  shown: shownDeadline,
  // Neither its key nor its data.
  contextOf: ({ id: eventId, name: deadline, at, attempt, traceparent }) => {
    return { type: 'deadline', deadline, eventId, at, attempt, traceparent };
  },
};

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

@Module({ imports: [DiscoveryModule], providers: [DeadlineDispatcher], exports: [DeadlineDispatcher] })
export class DeadlineHandlerModule {
  constructor(@Inject(ModulesContainer) modules: ModulesContainer) {
    startLast(modules, DeadlineHandlerModule);
  }
}
