import type { SessionEventDispatcher } from '../events/session-event.dispatcher.js';
import {
  SessionCreatedEvent,
  SessionDeletedEvent,
  type SessionEvent,
  type SessionEventInit,
  SessionExpiredEvent,
  SessionIdChangedEvent,
  SessionSignedInEvent,
} from '../events/session.events.js';
import { IndexedSessionRepository } from '../repository/indexed-session.repository.js';
import type { SessionRepositoryOptions } from '../repository/session.repository.js';
import { isKept, type KeptAttributes } from '../session/kept-attributes.js';
import type { AttributeSerializer } from '../session/attribute.serializer.js';
import { JsonAttributeSerializer } from '../session/json-attribute.serializer.js';
import { exceededBound } from '../session/session-bounds.js';
import {
  type AttributeChanges,
  type CreateSession,
  FORWARDING_TIME,
  LONGEST_REQUEST,
  type SessionChange,
  type SessionDeletedReason,
  type UpdateReply,
  type UpdateSession,
  type WriteReply,
} from '../session/session-change.js';
import type { SessionRecord } from '../session/session-record.js';
import { signInTimeOf } from '../session/session-info.js';
import { SessionSnapshot } from '../session/session-snapshot.js';
import { absoluteTimeoutOf, beganAt, endAfter, endOf } from '../session/session-timeouts.js';
import { SessionIds } from '../session/session-token.js';
import { PRINCIPAL_NAME_INDEX_NAME } from '../session/session.js';

/** A source of the time in epoch milliseconds, such as `Date`. */
export interface Clock {
  /** Epoch milliseconds. */
  now(): number;
}

export interface MapSessionRepositoryOptions extends SessionRepositoryOptions {
  /** @default Date */
  readonly clock?: Clock | undefined;
  /** Receives the events in the order in which they happened; unset: no events are delivered. */
  readonly dispatcher?: Pick<SessionEventDispatcher, 'dispatch' | 'broadcast'>;
}

interface MapEntry {
  id: string;
  readonly creationTime: number;
  lastAccessedTime: number;
  authenticatedAt: number | undefined;
  /** Greater than that of every session that began, or was signed in to, before. */
  order: number;
  maxInactiveInterval: number;
  /** When its absolute timeout passes, in epoch milliseconds; Infinity for never. */
  absoluteExpiry: number;
  /** When it expires, in epoch milliseconds; Infinity for never. */
  deadline: number;
  readonly attributes: Map<string, string>;
  readonly indexes: Map<string, string>;
  device: string | undefined;
}

interface ForwardingMark {
  readonly id: string;
  readonly until: number;
  /** Whether changes are forwarded: unless the session was cleared, or its principal has changed. */
  readonly leadsOn: boolean;
  /** Whether a rotation that does not lead on has signed a user out. */
  readonly isLeft: boolean;
  /** What the sign-in that left the mark has kept; undefined: it was none. */
  readonly kept: KeptAttributes | undefined;
}

/**
 * Keeps sessions in the memory of this process, for applications of one process and for tests. A restart loses the
 * sessions, their number is not limited, and an event whose handler fails is not retried. Otherwise it behaves like a
 * store that many instances share. Values are kept encoded, so that no two sessions share an object. Each step is
 * synchronous, hence atomic.
 */
export class MapSessionRepository extends IndexedSessionRepository {
  readonly #sessions = new Map<string, MapEntry>();
  readonly #forwarding = new Map<string, ForwardingMark>();
  /** When all sessions of a principal were last ended, by the monotonic clock, the earliest first. */
  readonly #revoked = new Map<string, number>();
  readonly #marks = new Map<string, { readonly value: number; readonly until: number }>();
  #signIns = 0;
  readonly #serializer: AttributeSerializer;
  readonly #clock: Clock;
  readonly #ids: SessionIds;
  readonly #dispatcher: MapSessionRepositoryOptions['dispatcher'];

  constructor(options: MapSessionRepositoryOptions = {}) {
    super(options);
    this.#serializer = options.serializer ?? new JsonAttributeSerializer();
    this.#clock = options.clock ?? Date;
    this.#ids = options.ids ?? new SessionIds();
    this.#dispatcher = options.dispatcher;
  }

  protected async load(ids: readonly string[]): Promise<SessionRecord[]> {
    const sessions = ids.map((id) => this.#alive(id)).filter((session) => session !== undefined);
    return sessions.map((session) => this.#recordOf(session));
  }

  /** Looks at every session: for a single process, an index would cost more than it saves. */
  protected async lookUp(indexName: string, value: string): Promise<SessionRecord[]> {
    return this.#listed(indexName, value).map((session) => this.#recordOf(session));
  }

  protected override async leaveMark(name: string, value: number, duration: number): Promise<void> {
    const now = this.#clock.now();
    // The oldest come first, and most of them have the same duration.
    for (const [each, { until }] of this.#marks) {
      if (until > now) break;
      this.#marks.delete(each);
    }
    const known = this.#markOf(name);
    this.#marks.delete(name);
    const until = Math.max(known?.until ?? 0, now + duration);
    this.#marks.set(name, { value: Math.max(known?.value ?? value, value), until });
  }

  protected override async readMarks(names: readonly string[]): Promise<(number | undefined)[]> {
    return names.map((name) => this.#markOf(name)?.value);
  }

  #markOf(name: string): { readonly value: number; readonly until: number } | undefined {
    const mark = this.#marks.get(name);
    return mark && mark.until > this.#clock.now() ? mark : undefined;
  }

  protected override async readClock(): Promise<number> {
    return this.#clock.now();
  }

  protected async write(change: SessionChange): Promise<WriteReply> {
    if (change.kind === 'create') return this.#create(change);
    const repeated = change.kind === 'update' && this.#repeated(change);
    if (repeated) return repeated;
    const { id, seals, stop } = this.#follow(change.id);
    const session = this.#alive(id);
    const isEnd = change.kind === 'delete' || (change.kind === 'update' && change.maxInactiveInterval === 0);
    if (stop && change.kind !== 'touch' && !(stop.isLeft && isEnd)) return { outcome: 'gone', rotated: true };
    if (!session) return { outcome: 'gone' };
    const isForwarded = session.id !== change.id;
    switch (change.kind) {
      case 'update':
        return this.#update(seals.reduce(withoutSealed, change), session) ?? savedReply(change, session, isForwarded);
      case 'touch':
        this.#renew(session);
        return { outcome: isForwarded ? 'forwarded' : 'touched' };
      case 'delete':
        if (change.listed && session.indexes.get(change.listed.indexName) !== change.listed.value)
          return { outcome: 'gone' };
        this.#end(session, change.reason ?? 'revoked');
        return { outcome: isForwarded ? 'forwarded' : 'deleted' };
    }
  }

  /** When the next session expires, in epoch milliseconds; Infinity when none does. */
  get nextExpiry(): number {
    return [...this.#sessions.values()].reduce((next, { deadline }) => Math.min(next, deadline), Infinity);
  }

  /** Ends the sessions that have expired and delivers their events. `expired` is their number. */
  async endExpired(): Promise<{ readonly expired: number }> {
    const now = this.#clock.now();
    for (const [id, mark] of this.#forwarding) if (mark.until <= now) this.#forwarding.delete(id);
    const expired = [...this.#sessions.values()].filter((session) => session.deadline <= now);
    for (const session of expired) this.#end(session);
    return { expired: expired.length };
  }

  protected override async endEvery(): Promise<void> {
    const now = this.#clock.now();
    const live = [...this.#sessions.values()].filter((each) => each.deadline > now);
    for (const each of live) this.#end(each, 'everybody');
  }

  protected override endListed(indexName: string, value: string, except: readonly string[]): Promise<number> {
    if (indexName === PRINCIPAL_NAME_INDEX_NAME) this.#revoke(value);
    return super.endListed(indexName, value, except);
  }

  #revoke(principal: string): void {
    const now = performance.now();
    this.#revoked.delete(principal);
    this.#revoked.set(principal, now);
    for (const [each, at] of this.#revoked) {
      if (now - at <= LONGEST_REQUEST) return;
      this.#revoked.delete(each);
    }
  }

  #isRevoked({ begunAt = Infinity, indexes }: Pick<UpdateSession, 'begunAt' | 'indexes'>): boolean {
    const principal = indexes.get(PRINCIPAL_NAME_INDEX_NAME);
    return typeof principal === 'string' && begunAt < (this.#revoked.get(principal) ?? -Infinity);
  }

  #create(change: CreateSession): WriteReply {
    const { id, presentedIds, maxInactiveInterval, absoluteTimeout, device, attributes, indexes } = change;
    if (presentedIds.some((presented) => this.#goesOn(this.#mark(presented)))) return { outcome: 'gone' };
    if (this.#isTaken(id)) return { outcome: 'collision' };
    if (this.#isRevoked(change)) return { outcome: 'revoked' };
    if (!this.#makesRoom(change)) return { outcome: 'refused' };
    const creationTime = this.#clock.now();
    const session: MapEntry = {
      id,
      creationTime,
      lastAccessedTime: creationTime,
      authenticatedAt: change.signsIn ? creationTime : undefined,
      order: ++this.#signIns,
      maxInactiveInterval,
      absoluteExpiry: endAfter(absoluteTimeout, creationTime),
      deadline: 0,
      device,
      attributes: new Map(),
      indexes: new Map(),
    };
    apply(attributes, session.attributes);
    apply(indexes, session.indexes);
    this.#renew(session);
    this.#sessions.set(id, session);
    this.#record(new SessionCreatedEvent(this.#eventOf(session)));
    if (change.signsIn) this.#record(new SessionSignedInEvent(this.#eventOf(session)));
    return { outcome: 'created', creationTime };
  }

  /** Why the update was refused; undefined when it was made. */
  #update(change: UpdateSession, session: MapEntry): UpdateReply | undefined {
    const { id, newId, maxInactiveInterval, absoluteTimeout, keepsIdle = false, expected } = change;
    const isForwarded = session.id !== id;
    if (isForwarded) {
      // A request that still holds the old id may only change attributes or end the session.
      const isMore = newId !== undefined || absoluteTimeout !== undefined || change.indexes.size > 0;
      const begins = change.signIn !== undefined || change.clears === true;
      if (isMore || (maxInactiveInterval ?? 0) !== 0)
        return begins ? { outcome: 'gone', rotated: true } : { outcome: 'gone' };
    }
    if (expected && session.attributes.get(expected.name) !== expected.text) {
      // The old token opens nothing any more, so a late request must not learn the current value.
      if (isForwarded) return { outcome: 'gone' };
      return { outcome: 'conflict', current: session.attributes.get(expected.name) };
    }
    if (newId !== undefined && this.#isTaken(newId)) return { outcome: 'collision' };
    const bound = exceededBound(change, session.attributes);
    if (bound) return { outcome: 'full', bound };
    const endsNow = maxInactiveInterval === 0 || absoluteTimeout === 0;
    if (!endsNow && this.#isRevoked(change)) return { outcome: 'revoked' };
    if (!endsNow && !this.#makesRoom(change)) return { outcome: 'refused' };

    const before = session.indexes.get(PRINCIPAL_NAME_INDEX_NAME);
    this.#removeAttributes(change, session);
    apply(change.attributes, session.attributes);
    apply(change.indexes, session.indexes);
    if (change.signIn) {
      session.authenticatedAt = this.#clock.now();
      session.order = ++this.#signIns;
    } else if (change.signsOut && !isForwarded) session.authenticatedAt = undefined;
    session.maxInactiveInterval = maxInactiveInterval ?? session.maxInactiveInterval;
    if (absoluteTimeout !== undefined) session.absoluteExpiry = endAfter(absoluteTimeout, beganAt(session));
    session.device = change.device ?? session.device;
    if (!keepsIdle) this.#renew(session);
    else if (maxInactiveInterval !== undefined || absoluteTimeout !== undefined) this.#setEnd(session);
    if (session.deadline <= this.#clock.now()) {
      this.#end(session, maxInactiveInterval === 0 ? 'invalidated' : undefined);
    } else if (newId !== undefined) {
      this.#changeId(session, newId, change, before);
    }
    return undefined;
  }

  /** False: one more is refused. In Redis, limit-in-one-partition.lua or limit-across-partitions.ts decides it. */
  #makesRoom({ id, limit, indexes }: Pick<CreateSession, 'id' | 'limit' | 'indexes'>): boolean {
    if (!limit || indexes.get(PRINCIPAL_NAME_INDEX_NAME) !== limit.principal) return true;
    const surplus = this.#listed(PRINCIPAL_NAME_INDEX_NAME, limit.principal)
      .filter((each) => each.id !== id)
      .toSorted((one, other) => signInTimeOf(other) - signInTimeOf(one) || other.order - one.order)
      .slice(limit.atMost - 1);
    if (surplus.length > 0 && limit.whenReached === 'refuse') return false;
    for (const each of surplus.toReversed()) this.#end(each, 'limit');
    return true;
  }

  #removeAttributes({ clears, signIn }: UpdateSession, { attributes }: MapEntry): void {
    if (clears) attributes.clear();
    if (signIn) for (const name of attributes.keys()) if (!isKept(name, signIn)) attributes.delete(name);
  }

  #renew(session: MapEntry): void {
    const now = this.#clock.now();
    session.lastAccessedTime = Math.max(session.lastAccessedTime, now);
    this.#setEnd(session);
  }

  #setEnd(session: MapEntry): void {
    // The last access may lie in the future, when the clock was set back.
    const accessed = Math.min(session.lastAccessedTime, this.#clock.now());
    session.deadline = endOf(session.maxInactiveInterval, accessed, session.absoluteExpiry);
  }

  #changeId(session: MapEntry, newId: string, change: UpdateSession, before?: string): void {
    const { clears, closes, signIn: kept, signsOut } = change;
    const previousSessionId = session.id;
    this.#sessions.delete(previousSessionId);
    const principal = session.indexes.get(PRINCIPAL_NAME_INDEX_NAME);
    const leadsOn = !clears && !closes && principal === before;
    const isLeft = !leadsOn && principal === undefined && (before !== undefined || signsOut === true);
    const mark = { id: newId, until: this.#clock.now() + FORWARDING_TIME, leadsOn, isLeft, kept };
    this.#forwarding.set(previousSessionId, mark);
    session.id = newId;
    this.#sessions.set(newId, session);
    this.#record(new SessionIdChangedEvent({ ...this.#eventOf(session), previousSessionId }));
    if (kept) this.#record(new SessionSignedInEvent(this.#eventOf(session)));
  }

  /** `reason`: why it is deleted; undefined: it has expired. */
  #end(session: MapEntry, reason?: SessionDeletedReason): void {
    this.#sessions.delete(session.id);
    const init = this.#eventOf(session);
    this.#record(reason ? new SessionDeletedEvent({ ...init, reason }) : new SessionExpiredEvent(init));
  }

  #listed(indexName: string, value: string): MapEntry[] {
    const now = this.#clock.now();
    return [...this.#sessions.values()].filter(
      ({ deadline, indexes }) => deadline > now && indexes.get(indexName) === value,
    );
  }

  #alive(id: string): MapEntry | undefined {
    const session = this.#sessions.get(id);
    return session && session.deadline > this.#clock.now() ? session : undefined;
  }

  /** Follows the marks, and says what the sign-ins on the way have kept. Ends: a marked id is never given again. */
  #follow(
    id: string,
    seals: readonly KeptAttributes[] = [],
  ): { id: string; seals: readonly KeptAttributes[]; stop?: ForwardingMark } {
    const mark = this.#mark(id);
    if (!mark) return { id, seals };
    if (!mark.leadsOn) return { id, seals, stop: mark };
    return this.#follow(mark.id, mark.kept ? [...seals, mark.kept] : seals);
  }

  /** Whether the session of a mark goes on, so that its client has, or gets, another token. */
  #goesOn(mark: ForwardingMark | undefined): boolean {
    return mark !== undefined && (!mark.isLeft || this.#goesOn(this.#mark(mark.id)));
  }

  #mark(id: string): ForwardingMark | undefined {
    const mark = this.#forwarding.get(id);
    return mark && mark.until > this.#clock.now() ? mark : undefined;
  }

  /** The reply to a rotation that is sent twice: it finds its own forwarding mark. */
  #repeated(change: UpdateSession): UpdateReply | undefined {
    const mark = this.#mark(change.id);
    if (!mark || mark.id !== change.newId) return undefined;
    const { id, stop } = this.#follow(mark.id);
    const session = this.#alive(id);
    if (session) return savedReply(change, session, false);
    return { outcome: stop ? 'saved' : 'gone' };
  }

  #isTaken(id: string): boolean {
    return this.#sessions.has(id) || this.#forwarding.has(id);
  }

  #recordOf(session: MapEntry): SessionRecord {
    const timeToLive = session.deadline === Infinity ? undefined : session.deadline - this.#clock.now();
    return { ...session, absoluteTimeout: absoluteTimeoutOf(session), attributes: [...session.attributes], timeToLive };
  }

  #eventOf(session: MapEntry): SessionEventInit {
    const record = { ...session, absoluteTimeout: absoluteTimeoutOf(session) };
    const snapshot = new SessionSnapshot(record, this.#serializer, this.#ids);
    return { sessionId: session.id, at: this.#clock.now(), session: snapshot, device: session.device };
  }

  #record(event: SessionEvent): void {
    // Not awaited, because a slow or failing handler must not affect the request. The dispatcher logs the failure.
    this.#dispatcher?.dispatch(event).catch(() => undefined);
    // Broadcast events are for every instance, and this is the only one.
    this.#dispatcher?.broadcast(event).catch(() => undefined);
  }
}

function savedReply({ signIn }: UpdateSession, { authenticatedAt }: MapEntry, isForwarded: boolean): UpdateReply {
  if (isForwarded) return { outcome: 'forwarded' };
  return signIn && authenticatedAt !== undefined ? { outcome: 'saved', authenticatedAt } : { outcome: 'saved' };
}

function withoutSealed(change: UpdateSession, kept: KeptAttributes): UpdateSession {
  const attributes: AttributeChanges = new Map([...change.attributes].filter(([name]) => isKept(name, kept)));
  const { expected } = change;
  return { ...change, attributes, expected: expected && isKept(expected.name, kept) ? expected : undefined };
}

function apply(changes: ReadonlyMap<string, string | null>, entries: Map<string, string>): void {
  for (const [name, text] of changes) {
    if (text === null) entries.delete(name);
    else entries.set(name, text);
  }
}
