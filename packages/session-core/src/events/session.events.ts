import type { SessionDeletedReason } from '../session/session-change.js';
import { readDevice, type SessionInfo } from '../session/session-info.js';
import type { ReadonlySession } from '../session/session.js';

export const SESSION_EVENT_TYPES = ['created', 'deleted', 'expired', 'id-changed', 'signed-in'] as const;

/** The type of an event, which is the same for all events of its class. */
export type SessionEventType = (typeof SESSION_EVENT_TYPES)[number];

/** What an event tells; by default, `dataLost` is false and `attempt` 1. `device`: as `SessionRecord` has it. */
export type SessionEventInit = Pick<SessionEvent, 'sessionId' | 'at' | 'session'> &
  Partial<Pick<SessionEvent, 'dataLost' | 'attempt' | 'traceparent'>> & { readonly device?: string | undefined };

export function sessionEventName(type: SessionEvent['type']): string {
  return `session.${type}`;
}

/** Derives `event.id`. It has no colon, because queues such as BullMQ refuse one in the id of a job. */
export function sessionEventId(type: string, sessionId: string): string {
  return `${type}-${sessionId}`;
}

/** The base class of all session events. */
export abstract class SessionEvent {
  /**
   * Names the event in log lines and dead letters, such as `expired-Zx3...`; the same at every delivery. Remember it in
   * a handler that must do its work only once.
   */
  readonly id: string;
  /** The id of the session, which is safe to log. After a rotation, it is the new id. */
  readonly sessionId: string;
  /** When the event was recorded, in epoch milliseconds by the store's clock. */
  readonly at: number;
  /** The session as it was. If the data was lost, it is an empty session, never undefined. */
  readonly session: ReadonlySession;
  /**
   * The name of the signed-in principal; undefined if there was none, or if the data was lost. Throws a
   * SessionStoreError if the store cannot read it, as without an encryption key.
   */
  readonly principalName: string | undefined;
  /** The client that created the session or signed in last; undefined without the option `devices`, or its data. */
  readonly device: SessionInfo['device'];
  /**
   * Whether the data was lost. That happens when the store notices the end only after the grace period (see the option
   * `grace`), and when no handler wanted the event at the time the session ended.
   */
  readonly dataLost: boolean;
  /**
   * The number of this attempt of the group, from 1; a failed attempt counts, and one that ended with its instance does
   * not. After a replay it begins at 1 again.
   */
  readonly attempt: number;
  /** @internal Of the span that caused the event. */
  readonly traceparent: string | undefined;

  constructor(
    /** What happened to the session. */
    readonly type: SessionEventType | 'bound',
    init: SessionEventInit,
  ) {
    this.id = sessionEventId(type, init.sessionId);
    this.sessionId = init.sessionId;
    this.at = init.at;
    this.session = init.session;
    try {
      this.principalName = init.session.principalName;
    } catch (error) {
      // Handlers that do not need it can run, and the others do not mistake the session for an anonymous one.
      const raise = () => {
        throw error;
      };
      Object.defineProperty(this, 'principalName', { enumerable: true, get: raise });
    }
    this.device = init.device === undefined ? undefined : readDevice(init.device);
    this.dataLost = init.dataLost ?? false;
    this.attempt = init.attempt ?? 1;
    this.traceparent = init.traceparent;
  }

  /** The name of the event for `@OnEvent` of @nestjs/event-emitter, such as `session.expired`. */
  get eventName(): string {
    return sessionEventName(this.type);
  }
}

/**
 * A session was stored for the first time. A store may skip the event while no handler wants it. A handler that is
 * added later receives the creations from then on.
 */
export class SessionCreatedEvent extends SessionEvent {
  constructor(init: SessionEventInit) {
    super('created', init);
  }
}

/**
 * Somebody signed in by `signIn()`, whether the visitor had a session or not. `sessionId` is the id since then. The
 * session was created, or rotated, by the same change, whose event comes first. `principalName` and `device` are those
 * of the sign-in, even if the rest of the data was lost. A store may skip the event while no handler wants it.
 */
export class SessionSignedInEvent extends SessionEvent {
  constructor(init: SessionEventInit) {
    super('signed-in', init);
  }
}

/** A session ended. Matches both deletion and expiry. */
export abstract class SessionDestroyedEvent extends SessionEvent {}

/** A session was deleted: by `signOut()`, `invalidate()`, `deleteById()`, `Sessions`, or a timeout of 0. */
export class SessionDeletedEvent extends SessionDestroyedEvent {
  /** Why it was deleted. A store that does not say so tells of `'revoked'`. */
  readonly reason: SessionDeletedReason;

  constructor(init: SessionEventInit & { readonly reason?: SessionDeletedReason | undefined }) {
    super('deleted', init);
    this.reason = init.reason ?? 'revoked';
  }
}

/** A session ended because its idle timeout or its absolute timeout passed. */
export class SessionExpiredEvent extends SessionDestroyedEvent {
  constructor(init: SessionEventInit) {
    super('expired', init);
  }
}

/** A session was rotated. `sessionId` is the new id, and `previousSessionId` the old one. */
export class SessionIdChangedEvent extends SessionEvent {
  /** The former id. Its token is no longer valid. */
  readonly previousSessionId: string;

  constructor(init: SessionEventInit & { readonly previousSessionId: string }) {
    super('id-changed', init);
    this.previousSessionId = init.previousSessionId;
  }
}

/**
 * A session was bound to the browser of its user, see the option `deviceBound`. Unlike the others, it is told once, on
 * the instance where the browser registered: what a handler throws is logged.
 */
export class SessionBoundEvent extends SessionEvent {
  constructor(init: SessionEventInit) {
    super('bound', init);
  }
}

/** The class of the events of each type. */
export const SESSION_EVENT_CLASSES = {
  created: SessionCreatedEvent,
  deleted: SessionDeletedEvent,
  expired: SessionExpiredEvent,
  'id-changed': SessionIdChangedEvent,
  'signed-in': SessionSignedInEvent,
} satisfies Record<SessionEventType, unknown>;
