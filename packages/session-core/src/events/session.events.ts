import type { ReadonlySession } from '../session/session.js';

export const SESSION_EVENT_TYPES = ['created', 'deleted', 'expired', 'id-changed'] as const;

/** What an event tells of: the `type` of its class. */
export type SessionEventType = (typeof SESSION_EVENT_TYPES)[number];

/** What the constructor of an event takes. */
export interface SessionEventInit {
  /** The id of the session; of a change of id, the new one. */
  readonly sessionId: string;
  /** Epoch milliseconds by the store's clock. */
  readonly at: number;
  /** The session as it was; an empty `SessionSnapshot` when its data was lost. */
  readonly session: ReadonlySession;
  /** Whether the data was gone before the end was noticed. @default false */
  readonly dataLost?: boolean;
  /** Which attempt to handle the event this is. @default 1 */
  readonly attempt?: number;
}

/** The name under which the EventEmitter emits events of a type. */
export function sessionEventName(type: SessionEventType): string {
  return `session.${type}`;
}

/** The base class of all session events. */
export abstract class SessionEvent {
  /**
   * The same at every delivery of the event, and its name in log lines and dead letters. Remember it in a handler that
   * must do its work only once.
   */
  readonly id: string;
  /** The id of the session, safe to log; of a change of id, the new one. */
  readonly sessionId: string;
  /** When the event was recorded: epoch milliseconds by the store's clock. */
  readonly at: number;
  /** The session as it was. Empty, never undefined, when the data was lost. */
  readonly session: ReadonlySession;
  /**
   * The name of the principal who was signed in; undefined when there was none, or the data was lost. Reading it throws
   * the SessionStoreError that reading an attribute throws, such as for a missing encryption key.
   */
  readonly principalName: string | undefined;
  /**
   * True when the end was noticed only after the data was gone: see the option `grace`. Also when a store has not kept the
   * data because no handler wanted the event of that end when the session ended.
   */
  readonly dataLost: boolean;
  /**
   * Which attempt of the group to handle the event this is: 1, and one more after each that failed. An instance that
   * ended meanwhile does not count. After a replay it begins at 1 again.
   */
  readonly attempt: number;

  constructor(
    /** What happened to the session. */
    readonly type: SessionEventType,
    init: SessionEventInit,
  ) {
    this.id = `${type}:${init.sessionId}`;
    this.sessionId = init.sessionId;
    this.at = init.at;
    this.session = init.session;
    try {
      this.principalName = init.session.principalName;
    } catch (error) {
      // The store cannot read it now. Handlers that do not need it must run, and others must not take it for nobody.
      Object.defineProperty(this, 'principalName', { enumerable: true, get: () => raise(error) });
    }
    this.dataLost = init.dataLost ?? false;
    this.attempt = init.attempt ?? 1;
  }

  /** The name of the event for `@OnEvent` of @nestjs/event-emitter, such as `session.expired`. */
  get eventName(): string {
    return sessionEventName(this.type);
  }
}

function raise(error: unknown): never {
  throw error;
}

/**
 * A session was stored for the first time. A store need not record it while no handler wants it: a handler that is added
 * later receives the creations from then on.
 */
export class SessionCreatedEvent extends SessionEvent {
  constructor(init: SessionEventInit) {
    super('created', init);
  }
}

/** A session ended. Matches both deletion and expiry. */
export abstract class SessionDestroyedEvent extends SessionEvent {}

/** A session was ended by request: `signOut()`, `invalidate()`, `deleteById()`, by `Sessions`, or by a timeout of 0. */
export class SessionDeletedEvent extends SessionDestroyedEvent {
  constructor(init: SessionEventInit) {
    super('deleted', init);
  }
}

/** A session ended because its idle timeout or its absolute timeout passed. */
export class SessionExpiredEvent extends SessionDestroyedEvent {
  constructor(init: SessionEventInit) {
    super('expired', init);
  }
}

/** A session got a new id: `sessionId` is the new one, `previousSessionId` the old one. */
export class SessionIdChangedEvent extends SessionEvent {
  /** The id until now, which opens nothing any more. */
  readonly previousSessionId: string;

  constructor(init: SessionEventInit & { readonly previousSessionId: string }) {
    super('id-changed', init);
    this.previousSessionId = init.previousSessionId;
  }
}

/** The class of the events of each type. */
export const SESSION_EVENT_CLASSES = {
  created: SessionCreatedEvent,
  deleted: SessionDeletedEvent,
  expired: SessionExpiredEvent,
  'id-changed': SessionIdChangedEvent,
} satisfies Record<SessionEventType, unknown>;
