import { PRINCIPAL_ATTRIBUTE } from './attribute-names.js';
import type { WarnOnce } from '../logging/warn-once.js';
import { isRotated } from './gone-reasons.js';
import type { WriteReply } from './session-change.js';
import type { SessionRecord } from './session-record.js';
import type { SessionSave, SessionWriter } from './session-writer.js';
import type { SaveOutcome } from './session.js';
import { beganAt, endAfter, endOf, type SessionTimeouts, type TimeoutChanges } from './session-timeouts.js';
import { type AttributesOwner, StoredAttributes } from './tracked-attributes.js';

/** What the store has of a session, as far as one object of the session knows. */
export class StoredSession implements AttributesOwner {
  /** The id in the store; undefined while the session is new. */
  id: string | undefined;
  creationTime: number;
  lastAccessedTime: number;
  authenticatedAt: number | undefined;
  timeouts: SessionTimeouts;
  /** The same, without those that a save has changed that had no reply: the store may have either. */
  knownTimeouts: TimeoutChanges;
  attributes: StoredAttributes;
  /** What the store needs to know of the session. */
  memo: object | undefined;
  /** How the session ended in the store, as far as this object knows: `deleted` by this object, else `gone`. */
  ended: 'deleted' | 'gone' | undefined;
  /** Whether the store had a user in the session when it was loaded. */
  readonly hadUser: boolean;
  /** Whether another request has rotated the session that is gone, so that it may go on under another id. */
  isRotated = false;
  /** Whether a save of this object has ended the session, also one that the store has forwarded. */
  wasEnded = false;
  /** Milliseconds since the store last renewed the session; undefined for a session that never expires. */
  readonly idleTime: number | undefined;

  constructor(
    record: SessionRecord,
    private readonly writer: SessionWriter,
    isNew = false,
  ) {
    const { maxInactiveInterval, absoluteTimeout } = record;
    this.id = isNew ? undefined : record.id;
    this.creationTime = record.creationTime;
    this.lastAccessedTime = record.lastAccessedTime;
    this.authenticatedAt = record.authenticatedAt;
    this.timeouts = this.knownTimeouts = { maxInactiveInterval, absoluteTimeout };
    this.attributes = new StoredAttributes(record.attributes, writer.serializer, this);
    this.hadUser = this.attributes.has(PRINCIPAL_ATTRIBUTE);
    this.memo = record.memo;
    this.idleTime = idleTimeOf(record);
  }

  get warnings(): WarnOnce {
    return this.writer.warnings;
  }

  shownId(): string {
    return this.writer.shown(this.id ?? '');
  }

  /** Takes over what another object of the session has loaded later. */
  replaceBy({ lastAccessedTime, authenticatedAt, timeouts, attributes, memo }: StoredSession): void {
    this.lastAccessedTime = lastAccessedTime;
    this.authenticatedAt = authenticatedAt;
    this.timeouts = this.knownTimeouts = timeouts;
    this.attributes = attributes;
    this.memo = memo;
  }

  /** Records that a save is on its way. */
  sent({ maxInactiveInterval, absoluteTimeout }: TimeoutChanges): void {
    if (maxInactiveInterval !== undefined)
      this.knownTimeouts = { ...this.knownTimeouts, maxInactiveInterval: undefined };
    if (absoluteTimeout !== undefined) this.knownTimeouts = { ...this.knownTimeouts, absoluteTimeout: undefined };
  }

  /** Records how the store answered a save, but for its attributes. */
  settle(save: SessionSave, reply: WriteReply): SaveOutcome {
    const { outcome } = reply;
    if (outcome === 'gone') return this.gone(isRotated(reply));
    if (outcome === 'collision' || outcome === 'conflict') return (this.ended = 'gone');
    if (save.kind === 'delete' || (save.kind === 'update' && save.maxInactiveInterval === 0)) {
      this.wasEnded = true;
      this.isRotated = false;
      // After a rotation elsewhere, this request must not make the client forget its new token.
      this.ended = outcome === 'forwarded' ? 'gone' : 'deleted';
      return this.ended === 'gone' ? 'gone' : 'saved';
    }
    if (outcome === 'created') {
      this.creationTime = this.lastAccessedTime = reply.creationTime;
      this.memo = reply.memo;
    }
    this.id = (save.kind === 'update' ? save.newId : undefined) ?? save.id;
    const { maxInactiveInterval, absoluteTimeout } = save;
    if (maxInactiveInterval !== undefined) this.#confirm({ maxInactiveInterval });
    if (absoluteTimeout !== undefined) this.#confirm({ absoluteTimeout });
    return 'saved';
  }

  /** Records that the store has no such session. */
  gone(rotated = false): 'gone' {
    this.isRotated = rotated;
    return (this.ended = 'gone');
  }

  /** What this object has becomes a new session, which the store does not have yet. */
  beginAnew(): void {
    this.id = this.ended = this.memo = undefined;
    this.isRotated = false;
  }

  #confirm(timeout: Partial<SessionTimeouts>): void {
    this.timeouts = { ...this.timeouts, ...timeout };
    this.knownTimeouts = { ...this.knownTimeouts, ...timeout };
  }
}

/** The record of a session that the store does not have yet. */
export function newRecord(id: string, timeouts: SessionTimeouts): SessionRecord {
  const now = Date.now();
  return { id, creationTime: now, lastAccessedTime: now, ...timeouts, timeToLive: undefined, attributes: [] };
}

/** Milliseconds since the store renewed the session: its full time to live, less what is left of it. */
function idleTimeOf(record: SessionRecord): number | undefined {
  const { lastAccessedTime, maxInactiveInterval, absoluteTimeout, timeToLive } = record;
  if (timeToLive === undefined) return undefined;
  const end = endOf(maxInactiveInterval, lastAccessedTime, endAfter(absoluteTimeout, beganAt(record)));
  return Math.max(0, end - lastAccessedTime - timeToLive);
}

/** When the store says that somebody signed in; undefined when nobody did. */
export function signInTimeIn(reply: WriteReply): number | undefined {
  if (reply.outcome === 'created') return reply.creationTime;
  return reply.outcome === 'saved' ? reply.authenticatedAt : undefined;
}
