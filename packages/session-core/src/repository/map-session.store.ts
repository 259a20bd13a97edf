import {
  type SessionEvent,
  SessionCreatedEvent,
  SessionDeletedEvent,
  SessionExpiredEvent,
  SessionIdChangedEvent,
} from '../events/session.events.js';
import type { AttributeSerializer } from '../session/attribute.serializer.js';
import { PRINCIPAL_NAME_INDEX_NAME } from '../session/session.js';
import type {
  CreateSession,
  SessionChanges,
  SessionRecord,
  TouchReply,
  UpdateSession,
  WriteReply,
} from '../session/session-record.js';
import { SessionSnapshot } from '../session/session-snapshot.js';
import type { AttributeChanges } from '../session/tracked-attributes.js';

/** Epoch milliseconds, as `Date` has them. */
export interface Clock {
  now(): number;
}

interface StoredSession {
  id: string;
  readonly creationTime: number;
  lastAccessedTime: number;
  maxInactiveInterval: number;
  absoluteTimeout: number;
  /** When it expires; Infinity for never. */
  deadline: number;
  readonly attributes: Map<string, string>;
}

interface MovedMark {
  readonly id: string;
  readonly until: number;
}

type EndedEvent = typeof SessionDeletedEvent | typeof SessionExpiredEvent;

/** How long the saves of requests that loaded a session under its old id are forwarded to the new one. */
const MOVED_FOR = 60_000;

/**
 * What `MapSessionRepository` stores, and the steps it takes, each of them complete before the next begins. They answer
 * as those of any store must: a session that has ended takes no change, and every end is recorded once.
 */
export class MapSessionStore {
  readonly #sessions = new Map<string, StoredSession>();
  readonly #moved = new Map<string, MovedMark>();

  constructor(
    private readonly serializer: AttributeSerializer,
    private readonly clock: Clock,
    private readonly record: (event: SessionEvent) => void,
  ) {}

  load(id: string): SessionRecord | undefined {
    const session = this.#alive(id);
    return session && this.#recordOf(session);
  }

  /** The live sessions that match. */
  find(matches: (session: SessionSnapshot) => boolean): SessionRecord[] {
    const now = this.clock.now();
    const alive = [...this.#sessions.values()].filter((session) => session.deadline > now);
    return alive.filter((session) => matches(this.#snapshot(session))).map((session) => this.#recordOf(session));
  }

  write(changes: SessionChanges): WriteReply {
    switch (changes.kind) {
      case 'create':
        return this.#create(changes);
      case 'update':
        return this.#update(changes);
      case 'delete':
        return this.#endFor(changes.id, this.#alive(this.#follow(changes.id)), SessionDeletedEvent);
    }
  }

  touch(id: string): TouchReply {
    const currentId = this.#follow(id);
    const session = this.#alive(currentId);
    if (!session) return 'gone';
    this.#renew(session);
    return currentId === id ? 'touched' : 'moved';
  }

  /** Ends what has expired, and forgets old marks. Returns how many sessions have expired. */
  claimExpired(): number {
    const now = this.clock.now();
    for (const [id, mark] of this.#moved) if (mark.until <= now) this.#moved.delete(id);
    const expired = [...this.#sessions.values()].filter((session) => session.deadline <= now);
    for (const session of expired) this.#end(session, SessionExpiredEvent);
    return expired.length;
  }

  #create({ id, presentedId, maxInactiveInterval, absoluteTimeout, attributes }: CreateSession): WriteReply {
    if (presentedId !== undefined && this.#follow(presentedId) !== presentedId) return { outcome: 'gone' };
    if (this.#isTaken(id)) return { outcome: 'collision' };
    const creationTime = this.clock.now();
    const session: StoredSession = {
      id,
      creationTime,
      lastAccessedTime: creationTime,
      maxInactiveInterval,
      absoluteTimeout,
      deadline: 0,
      attributes: new Map(),
    };
    apply(attributes, session);
    this.#renew(session);
    this.#sessions.set(id, session);
    this.record(new SessionCreatedEvent(this.#eventOf(session)));
    return { outcome: 'saved', creationTime };
  }

  #update(changes: UpdateSession): WriteReply {
    const { id, newId, maxInactiveInterval, absoluteTimeout, keepsIdle = false, attributes, expected } = changes;
    const currentId = this.#follow(id);
    const session = this.#alive(currentId);
    if (!session) return { outcome: 'gone' };
    if (currentId !== id) {
      // A change of id that is sent twice finds what it did.
      if (newId === currentId) return { outcome: 'saved' };
      // A request that still holds the old id may change attributes, or end the session. With more, whoever planted
      // that id before a login and kept a request open across it could take the session over.
      const isMore = newId !== undefined || absoluteTimeout !== undefined || attributes.has(PRINCIPAL_NAME_INDEX_NAME);
      if (isMore || (maxInactiveInterval ?? 0) !== 0) return { outcome: 'gone' };
    }
    if (expected && session.attributes.get(expected.name) !== expected.text) {
      // The old token is to read nothing any more, so a late request is not told what there is now.
      if (currentId !== id) return { outcome: 'gone' };
      return { outcome: 'conflict', current: session.attributes.get(expected.name) };
    }
    if (newId !== undefined && this.#isTaken(newId)) return { outcome: 'collision' };

    apply(attributes, session);
    session.maxInactiveInterval = maxInactiveInterval ?? session.maxInactiveInterval;
    session.absoluteTimeout = absoluteTimeout ?? session.absoluteTimeout;
    if (!keepsIdle) this.#renew(session);
    else if (maxInactiveInterval !== undefined || absoluteTimeout !== undefined) this.#setEnd(session);
    if (session.deadline <= this.clock.now()) {
      return this.#endFor(id, session, maxInactiveInterval === 0 ? SessionDeletedEvent : SessionExpiredEvent);
    }
    if (newId !== undefined) this.#move(session, newId);
    return { outcome: 'saved' };
  }

  /** On behalf of a request that knows the session by `id`. */
  #endFor(id: string, session: StoredSession | undefined, Ended: EndedEvent): WriteReply {
    if (!session) return { outcome: 'gone' };
    const currentId = session.id;
    this.#end(session, Ended);
    // Under another id, the client has the token of that one, which is not the caller's to take away.
    return { outcome: currentId === id ? 'saved' : 'gone' };
  }

  #renew(session: StoredSession): void {
    const now = this.clock.now();
    session.lastAccessedTime = Math.max(session.lastAccessedTime, now);
    this.#setEnd(session);
  }

  #setEnd(session: StoredSession): void {
    // The last access may lie in the future, of a clock that was set back.
    const accessed = Math.min(session.lastAccessedTime, this.clock.now());
    session.deadline = Math.min(
      endAfter(session.maxInactiveInterval, accessed),
      endAfter(session.absoluteTimeout, session.creationTime),
    );
  }

  #move(session: StoredSession, newId: string): void {
    const previousSessionId = session.id;
    this.#sessions.delete(previousSessionId);
    this.#moved.set(previousSessionId, { id: newId, until: this.clock.now() + MOVED_FOR });
    session.id = newId;
    this.#sessions.set(newId, session);
    this.record(new SessionIdChangedEvent({ ...this.#eventOf(session), previousSessionId }));
  }

  #end(session: StoredSession, Ended: EndedEvent): void {
    this.#sessions.delete(session.id);
    this.record(new Ended(this.#eventOf(session)));
  }

  #alive(id: string): StoredSession | undefined {
    const session = this.#sessions.get(id);
    return session && session.deadline > this.clock.now() ? session : undefined;
  }

  /** The id that a session has now which recently had this one. No circle: an id with a mark is never given again. */
  #follow(id: string): string {
    const mark = this.#moved.get(id);
    return mark && mark.until > this.clock.now() ? this.#follow(mark.id) : id;
  }

  #isTaken(id: string): boolean {
    return this.#sessions.has(id) || this.#moved.has(id);
  }

  #recordOf(session: StoredSession): SessionRecord {
    const timeToLive = session.deadline === Infinity ? undefined : session.deadline - this.clock.now();
    return { ...session, attributes: [...session.attributes], timeToLive };
  }

  #eventOf(session: StoredSession): { sessionId: string; at: number; session: SessionSnapshot } {
    return { sessionId: session.id, at: this.clock.now(), session: this.#snapshot(session) };
  }

  #snapshot(session: StoredSession): SessionSnapshot {
    return new SessionSnapshot(session, this.serializer);
  }
}

/** When a time of so many seconds is over; Infinity for one that never is. */
function endAfter(seconds: number, since: number): number {
  return seconds < 0 ? Infinity : since + seconds * 1000;
}

function apply(changes: AttributeChanges, session: StoredSession): void {
  for (const [name, text] of changes) {
    if (text === null) session.attributes.delete(name);
    else session.attributes.set(name, text);
  }
}
