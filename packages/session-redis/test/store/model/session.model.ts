import { isDeepStrictEqual } from 'node:util';
import { PRINCIPAL_NAME_INDEX_NAME, type SessionEventType } from '@nest-session/core';
import {
  type CreateSession,
  isKept,
  type KeptAttributes,
  type SessionChange,
  type SessionRecord,
  type UpdateSession,
  type WriteReply,
} from '@nest-session/core/store';

/** The differences between stores. */
export interface StoreTraits {
  /** How many milliseconds longer everything lives: Redis drops a key after its time, not at it. */
  readonly lag: number;
  /** Milliseconds for which the data of an ended session waits for its report. */
  readonly grace: number;
  /** The time from which a sweep finds a session that ended at `end`. */
  foundFrom(end: number): number;
}

/** The recorded events of a session, as far as the model knows them. */
export interface ModelEvent {
  readonly type: SessionEventType;
  readonly sessionId: string;
  readonly previousSessionId?: string | undefined;
  readonly at: number;
  readonly dataLost: boolean;
  readonly creationTime: number;
  readonly principalName: string | undefined;
  readonly attributes: Readonly<Record<string, unknown>>;
}

/** The sessions that a lookup in an index, which takes several steps, may find and must find. */
interface LookUp {
  readonly indexName: string;
  readonly value: string;
  readonly ever: Set<ModelSession>;
  always: Set<ModelSession>;
}

const MOVED_FOR = 60_000;

/** The expected state of a session. */
class ModelSession {
  readonly attributes = new Map<string, string>();
  readonly indexes = new Map<string, string>();
  lastAccessedTime: number;
  /** Its end has been recorded. */
  hasEnded = false;
  /** No key of it is left. */
  isForgotten = false;
  authenticatedAt: number | undefined;
  /** Its former ids, each with the time until which the store forwards a late request, and what a sign-in has kept then. */
  readonly ids: { readonly id: string; until: number; kept?: KeptAttributes | undefined }[];
  absoluteEnd: number;

  constructor(
    id: string,
    readonly creationTime: number,
    public maxInactiveInterval: number,
    absoluteTimeout: number,
  ) {
    this.ids = [{ id, until: Infinity }];
    this.lastAccessedTime = creationTime;
    this.absoluteEnd = endAfter(creationTime, absoluteTimeout);
  }

  /** When the absolute timeout began. */
  get start(): number {
    return Math.max(this.creationTime, this.authenticatedAt ?? 0);
  }

  get id(): string {
    return this.ids.at(-1)!.id;
  }

  get end(): number {
    return Math.min(endAfter(this.lastAccessedTime, this.maxInactiveInterval), this.absoluteEnd);
  }
}

/**
 * The expected sessions after each step, with the outcome of the step and the events that it records. A difference from
 * the store throws.
 */
export class SessionModel {
  readonly #sessions: ModelSession[] = [];
  readonly #lookUps = new Set<LookUp>();
  /** The events that the last step must have recorded. */
  #predicted: ModelEvent[] = [];

  constructor(
    private readonly traits: StoreTraits,
    /** Epoch milliseconds. */
    public now: number,
  ) {}

  advance(ms: number): void {
    this.now += ms;
    this.#notice();
  }

  /** The coming times at which something changes without a step. */
  get instants(): number[] {
    const { foundFrom, grace } = this.traits;
    const ends = this.#sessions.filter(({ hasEnded }) => !hasEnded).map(({ end }) => end);
    const marks = this.#sessions.flatMap(({ ids }) => ids.map(({ until }) => until));
    const times = [...marks, ...ends.flatMap((end) => [end, foundFrom(end), end + grace])];
    return times.filter((time) => time >= this.now && time < Infinity);
  }

  /** Every id that a session has or has had. */
  get ids(): string[] {
    return this.#sessions.flatMap(({ ids }) => ids.map(({ id }) => id));
  }

  get aliveIds(): string[] {
    return this.#alive.map(({ id }) => id);
  }

  /** Whether the end of a session was claimed only after its data, and so its index entries, were lost. */
  get hasLostData(): boolean {
    return this.#sessions.some(({ isForgotten }) => isForgotten);
  }

  /** Whether the store has dropped all traces of an ended session by now. */
  isForgotten(id: string): boolean {
    const session = this.#sessions.find((each) => each.id === id);
    return session !== undefined && (session.isForgotten || this.#isLost(session));
  }

  /** The time at which a sweep finds every session that has ended by then. */
  get quietFrom(): number {
    const ends = this.#sessions.filter(({ hasEnded, end }) => !hasEnded && end < Infinity).map(({ end }) => end);
    return Math.max(this.now, ...ends.map((end) => this.traits.foundFrom(end) + this.traits.lag));
  }

  expectLoaded(ids: readonly string[], records: readonly SessionRecord[]): void {
    const alive = this.#alive.filter(({ id }) => ids.includes(id));
    expectSame(
      'loaded',
      bySessionId(records.map(plain)),
      bySessionId(alive.map((session) => plain(this.#recordOf(session)))),
    );
  }

  expectReply(change: SessionChange, reply: WriteReply): void {
    const expected = change.kind === 'create' ? this.#create(change) : this.#change(change);
    this.#notice();
    expectSame('replied', reply, expected);
  }

  /** Begins a lookup. The returned function takes the result. */
  lookUp(indexName: string, value: string): (records: readonly SessionRecord[]) => void {
    const listed = this.#listed(indexName, value);
    const lookUp = { indexName, value, ever: new Set(listed), always: new Set(listed) };
    this.#lookUps.add(lookUp);
    return (records) => {
      this.#lookUps.delete(lookUp);
      const found = records.map(({ id }) => this.#sessions.find(({ ids }) => ids.some((each) => each.id === id)));
      const missing = [...lookUp.always].filter((session) => !found.includes(session));
      const wrong = found.filter((session, i) => !session || !lookUp.ever.has(session) || found.indexOf(session) < i);
      expectSame('missing in the index', idsOf(missing), []);
      expectSame('wrongly found in the index, or twice', idsOf(wrong), []);
    };
  }

  /** Adds the events that the last step has recorded. */
  expectRecorded(events: readonly ModelEvent[]): void {
    for (const event of events) {
      const predicted = this.#predicted.findIndex((each) => isDeepStrictEqual(each, event));
      if (predicted >= 0) this.#predicted.splice(predicted, 1);
      else this.#expectExpired(event);
    }
    expectSame('has not recorded', this.#predicted, []);
  }

  /** Begins a sweep `ahead` milliseconds into the future. The returned function is called at its end. */
  sweep(ahead: number): () => void {
    const found = this.#over.filter(({ end }) => this.traits.foundFrom(end) <= this.now + ahead);
    return () => expectSame('over and not reported', idsOf(found.filter(({ hasEnded }) => !hasEnded)), []);
  }

  /** Key events of ended sessions arrive. The returned function is called once they are handled. */
  hearOf(): () => void {
    const over = this.#over;
    return () => {
      // Sessions without data are left to the sweep.
      const forgotten = over.filter((session) => !session.hasEnded && !this.#isLost(session));
      expectSame('heard of and not reported', idsOf(forgotten), []);
    };
  }

  get #alive(): ModelSession[] {
    return this.#sessions.filter((session) => !session.hasEnded && !this.#isOver(session));
  }

  get #over(): ModelSession[] {
    return this.#sessions.filter((session) => !session.hasEnded && this.#isOver(session));
  }

  /** A session that is renewed in the very millisecond of its end ends at once. */
  #isOver({ end, lastAccessedTime }: ModelSession): boolean {
    return this.now >= end + this.traits.lag || lastAccessedTime >= end;
  }

  /** Its end was not reported in time. */
  #isLost({ hasEnded, end }: ModelSession): boolean {
    return !hasEnded && this.now >= end + this.traits.grace + this.traits.lag;
  }

  #listed(indexName: string, value: string): ModelSession[] {
    return this.#alive.filter(({ indexes }) => indexes.get(indexName) === value);
  }

  /** The session of an id, which may have changed its id since. */
  #led(id: string): ModelSession | undefined {
    const isValid = (each: ModelSession['ids'][number]) => each.id === id && this.now < each.until + this.traits.lag;
    return this.#sessions.find(({ ids, isForgotten }) => !isForgotten && ids.some(isValid));
  }

  #create(change: CreateSession): WriteReply {
    const { id, maxInactiveInterval, absoluteTimeout, attributes, indexes, presentedIds } = change;
    if (presentedIds.some((presented) => (this.#led(presented)?.id ?? presented) !== presented)) {
      return { outcome: 'gone' };
    }
    if (this.#led(id)) return { outcome: 'collision' };
    const session = new ModelSession(id, this.now, maxInactiveInterval, absoluteTimeout);
    if (change.signsIn) session.authenticatedAt = this.now;
    apply(attributes, session.attributes);
    apply(indexes, session.indexes);
    this.#sessions.push(session);
    this.#predict('created', session);
    return { outcome: 'created', creationTime: this.now };
  }

  #change(change: Exclude<SessionChange, CreateSession>): WriteReply {
    const session = this.#led(change.id);
    if (!session || !this.#alive.includes(session)) return { outcome: 'gone' };
    const isForwarded = session.id !== change.id;
    switch (change.kind) {
      case 'update':
        return this.#update(withoutSealed(change, session), session) ?? savedReply(change, session, isForwarded);
      case 'touch':
        session.lastAccessedTime = this.now;
        return { outcome: isForwarded ? 'forwarded' : 'touched' };
      case 'delete':
        this.#end(session, 'deleted');
        return { outcome: isForwarded ? 'forwarded' : 'deleted' };
    }
  }

  #update(change: UpdateSession, session: ModelSession): WriteReply | undefined {
    const { id, newId, expected, maxInactiveInterval: interval, absoluteTimeout } = change;
    const isForwarded = session.id !== id;
    if (isForwarded && newId !== undefined && this.#wasGiven(session, id, newId))
      return savedReply(change, session, false);
    const isMore = newId !== undefined || absoluteTimeout !== undefined || change.indexes.size > 0 || interval;
    if (isForwarded && isMore) return { outcome: 'gone' };
    if (expected && session.attributes.get(expected.name) !== expected.text) {
      return isForwarded
        ? { outcome: 'gone' }
        : { outcome: 'conflict', current: session.attributes.get(expected.name) };
    }
    const { signIn } = change;
    for (const name of session.attributes.keys()) if (signIn && !isKept(name, signIn)) session.attributes.delete(name);
    apply(change.attributes, session.attributes);
    apply(change.indexes, session.indexes);
    if (signIn || change.signsOut) session.authenticatedAt = signIn && this.now;
    session.maxInactiveInterval = interval ?? session.maxInactiveInterval;
    if (absoluteTimeout !== undefined) session.absoluteEnd = endAfter(session.start, absoluteTimeout);
    if (!change.keepsIdle) session.lastAccessedTime = this.now;
    const setsEnd = !change.keepsIdle || interval !== undefined || absoluteTimeout !== undefined;
    if (setsEnd && session.end <= this.now) {
      this.#end(session, interval === 0 ? 'deleted' : 'expired');
    } else if (newId !== undefined) {
      Object.assign(session.ids.at(-1)!, { until: this.now + MOVED_FOR, kept: signIn });
      session.ids.push({ id: newId, until: Infinity });
      this.#predict('id-changed', session, id);
    }
    return undefined;
  }

  /** Whether a session was given one id in place of another. */
  #wasGiven({ ids }: ModelSession, id: string, newId: string): boolean {
    return ids[ids.findIndex((each) => each.id === id) + 1]?.id === newId;
  }

  #end(session: ModelSession, type: 'deleted' | 'expired'): void {
    session.hasEnded = true;
    this.#predict(type, session);
  }

  #predict(type: SessionEventType, session: ModelSession, previousSessionId?: string): void {
    this.#predicted.push(this.#eventOf(type, session, previousSessionId));
  }

  #eventOf(type: SessionEventType, session: ModelSession, previousSessionId?: string, dataLost = false): ModelEvent {
    const entries = dataLost ? [] : [...session.attributes].map(([name, text]) => [name, JSON.parse(text)] as const);
    const attributes = Object.fromEntries(entries) as ModelEvent['attributes'];
    return {
      type,
      sessionId: session.id,
      previousSessionId,
      at: this.now,
      dataLost,
      creationTime: dataLost ? 0 : session.creationTime,
      principalName: attributes[PRINCIPAL_NAME_INDEX_NAME] as string | undefined,
      attributes,
    };
  }

  #expectExpired(event: ModelEvent): void {
    const session = this.#over.find(({ id }) => id === event.sessionId);
    const isForgotten = session !== undefined && this.#isLost(session);
    expectSame('recorded', event, session && this.#eventOf('expired', session, undefined, isForgotten));
    if (session) Object.assign(session, { hasEnded: true, isForgotten });
  }

  /** The state may have changed during a lookup. */
  #notice(): void {
    for (const lookUp of this.#lookUps) {
      const listed = new Set(this.#listed(lookUp.indexName, lookUp.value));
      for (const session of listed) lookUp.ever.add(session);
      lookUp.always = new Set([...lookUp.always].filter((session) => listed.has(session)));
    }
  }

  #recordOf(session: ModelSession): SessionRecord {
    const { id, start, end, absoluteEnd, creationTime, lastAccessedTime, authenticatedAt, attributes } = session;
    const absoluteTimeout = absoluteEnd === Infinity ? -1 : Math.round((absoluteEnd - start) / 1000);
    const { maxInactiveInterval } = session;
    const times = { creationTime, lastAccessedTime, authenticatedAt, maxInactiveInterval, absoluteTimeout };
    return { id, ...times, attributes, timeToLive: end === Infinity ? undefined : end - this.now };
  }
}

/** A difference between a store and its model. */
export class Mismatch extends Error {}

function expectSame(what: string, actual: unknown, expected: unknown): void {
  if (isDeepStrictEqual(actual, expected)) return;
  throw new Mismatch(`${what}: ${JSON.stringify(actual)}\nexpected: ${JSON.stringify(expected) ?? 'nothing'}`);
}

/** The fields of an event that are compared. */
function plain(record: SessionRecord): object {
  const { id, creationTime, lastAccessedTime, maxInactiveInterval, absoluteTimeout, attributes, timeToLive } = record;
  const authenticatedAt = record.authenticatedAt ?? 'never';
  const times = { creationTime, lastAccessedTime, authenticatedAt, maxInactiveInterval, absoluteTimeout, timeToLive };
  return { id, ...times, attributes: Object.fromEntries(attributes) };
}

/** A late change without the attributes that sign-ins since then have not kept. */
function withoutSealed(change: UpdateSession, { ids }: ModelSession): UpdateSession {
  const seals = ids.slice(ids.findIndex(({ id }) => id === change.id)).flatMap(({ kept }) => kept ?? []);
  const isOpen = (name: string) => seals.every((kept) => isKept(name, kept));
  const attributes = new Map([...change.attributes].filter(([name]) => isOpen(name)));
  return {
    ...change,
    attributes,
    expected: change.expected && isOpen(change.expected.name) ? change.expected : undefined,
  };
}

function savedReply({ signIn }: UpdateSession, { authenticatedAt }: ModelSession, isForwarded: boolean): WriteReply {
  if (isForwarded) return { outcome: 'forwarded' };
  return signIn && authenticatedAt !== undefined ? { outcome: 'saved', authenticatedAt } : { outcome: 'saved' };
}

function bySessionId(records: readonly object[]): object[] {
  return records.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

function idsOf(sessions: readonly (ModelSession | undefined)[]): (string | undefined)[] {
  return sessions.map((session) => session?.id);
}

/** The end of a timeout of so many seconds; Infinity for none. */
function endAfter(time: number, seconds: number): number {
  return seconds < 0 ? Infinity : time + seconds * 1000;
}

function apply(changes: ReadonlyMap<string, string | null>, entries: Map<string, string>): void {
  for (const [name, text] of changes) {
    if (text === null) entries.delete(name);
    else entries.set(name, text);
  }
}
