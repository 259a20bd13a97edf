import { isDeepStrictEqual } from 'node:util';
import { PRINCIPAL_NAME_INDEX_NAME, type SessionEvent, type SessionInfo } from '@nest-session/core';
import { PRINCIPAL_ATTRIBUTE } from '@nest-session/core/internal';
import type { SessionEventType } from '@nest-session/core/internal';
import {
  type CreateSession,
  isKept,
  type KeptAttributes,
  type SessionChange,
  type SessionRecord,
  type UpdateSession,
  type WriteReply,
} from '@nest-session/core/store';
import type { Room, StoreReply } from '../../../src/scripts/session/session.scripts.js';

/** The differences between stores. */
export interface StoreTraits {
  /** How many milliseconds longer everything lives: Redis drops a key after its time, not at it. */
  readonly lag: number;
  /** Milliseconds for which the data of an ended session waits for its report. */
  readonly grace: number;
  /** Whether `endEverySession()` leaves the end of the sessions, which no load finds any more, to a sweep. */
  readonly endsLater: boolean;
  /** The time from which a sweep finds a session that ended at `end`. */
  foundFrom(end: number): number;
}

/** The recorded events of a session, as far as the model knows them. */
export interface ModelEvent {
  readonly type: SessionEvent['type'];
  readonly sessionId: string;
  readonly previousSessionId?: string | undefined;
  readonly at: number;
  readonly dataLost: boolean;
  readonly creationTime: number;
  readonly principalName: string | undefined;
  readonly attributes: Readonly<Record<string, unknown>>;
}

/** A sign-in, or another change that the limit is to know of. */
export type SignInChange = CreateSession | UpdateSession;

/** One that takes several steps. */
interface SignIn {
  readonly change: SignInChange;
  /** The most other sessions that its principal has had meanwhile, with those that were about to be stored. */
  mostOthers: number;
  /** The reply to the step that was to store it. */
  stored?: StoreReply<WriteReply>;
}

/** The answers to all ways to ask for what an index lists. */
interface Listed {
  readonly found: readonly SessionRecord[];
  readonly listed: readonly SessionInfo[];
  readonly count: number;
}

/** What the last step has ended, as deleted: its events tell which, where several have signed in at the same time. */
interface Ends {
  /** So many of these, those first whose sign-in is the longest ago. */
  readonly number: number;
  readonly among: readonly ModelSession[];
  /** And any of these. */
  readonly outdated: readonly ModelSession[];
  /** How many in all, if the step has told. */
  readonly total?: number | undefined;
}

/** The sessions that a lookup in an index, which takes several steps, may find and must find. */
interface LookUp {
  readonly indexName: string;
  readonly value: string;
  readonly ever: Set<ModelSession>;
  always: Set<ModelSession>;
}

const FORWARDING_TIME = 60_000;

interface ModelId {
  readonly id: string;
  until: number;
  kept?: KeptAttributes | undefined;
  was?: string | undefined;
  is?: string | undefined;
}

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
  /**
   * Its former ids, each with the time until which the store forwards a late request, and what a sign-in has kept then.
   * It forwards nothing where the principal `was` another one than it `is` since.
   */
  readonly ids: ModelId[];
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

  /** By what an index sorts it. */
  get signInTime(): number {
    return this.authenticatedAt ?? this.creationTime;
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
  #ends: Ends | undefined;
  /** The checks that wait for the events of the last step. */
  readonly #afterEvents: (() => void)[] = [];
  readonly #signIns = new Set<SignIn>();
  /** The room of sessions by their ids, which the ledger keeps for some time even if they leave their principal. */
  readonly #reservations = new Map<string, Room>();
  /** For which session there is room in this step. */
  #room: Room | undefined;
  /** No load finds a session that began until then. */
  #epoch = -Infinity;

  constructor(
    private readonly traits: StoreTraits,
    /** Epoch milliseconds. */
    public now: number,
    /** How many live sessions a principal may have. */
    private readonly limit = Infinity,
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

  /** What reports the ends of all sessions that are over by now. */
  get cleanups(): ('heard of' | 'older')[] {
    const cleanups: ('heard of' | 'older')[] = this.#over.length > 0 ? ['heard of'] : [];
    return this.#outdated.length > 0 ? [...cleanups, 'older'] : cleanups;
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
    const alive = this.#valid.filter(({ id }) => ids.includes(id));
    expectSame(
      'loaded',
      bySessionId(records.map(plain)),
      bySessionId(alive.map((session) => plain(this.#recordOf(session)))),
    );
  }

  expectReply(change: SessionChange, reply: WriteReply): void {
    // A lookup may have removed it from the index before it ends.
    const mayBeUnlisted = change.kind === 'delete' && change.listed && this.#isOutdatedId(change.id);
    if (mayBeUnlisted && reply.outcome === 'gone') return;
    const expected = change.kind === 'create' ? this.#create(change) : this.#change(change);
    this.#notice();
    expectSame('replied', reply, expected);
  }

  /** Begins a sign-in that takes several steps. The returned function takes the reply. */
  signIn(change: SignInChange): (reply: WriteReply) => void {
    const signIn: SignIn = { change, mostOthers: 0 };
    this.#signIns.add(signIn);
    this.#notice();
    return (reply) => {
      this.#signIns.delete(signIn);
      const { stored, mostOthers } = signIn;
      if (stored) expectSame('replied in the end', reply, stored);
      else if (reply.outcome === 'refused' && change.limit) {
        expectSame('refuses', change.limit.whenReached, 'refuse');
        expectSame('refused, although there is room', mostOthers < change.limit.atMost, false);
      } else {
        expectSame('replied without a step', reply, { outcome: this.#hasEverBeenGone(change) ? 'gone' : 'not yet' });
      }
    };
  }

  /** A step was to store the session of a sign-in, if it came until then. */
  expectStored(change: SignInChange, room: Room, reply: StoreReply<WriteReply>): void {
    for (const signIn of this.#signIns) {
      // The store may copy a change. Two changes of one session may be under way, each with attributes of its own. One
      // that came too late is made once more.
      const isOf = signIn.change.attributes === change.attributes;
      if (isOf) signIn.stored = reply.outcome === 'late' ? undefined : reply;
    }
    this.#room = room;
    this.expectReply(change, reply as WriteReply);
    this.#room = undefined;
    if (room.principal !== '') this.#reservations.set(idAfter(change), room);
    this.#notice();
  }

  /** Every live session that the index of principals lists has a place in the ledger. */
  expectPlaces(principal: string, ids: readonly string[]): void {
    const live = idsOf(this.#listed(PRINCIPAL_NAME_INDEX_NAME, principal)).filter((id) => id !== undefined);
    expectSame(
      'without a place',
      live.filter((id) => !ids.includes(id)),
      [],
    );
  }

  /** A principal has these sessions and no others. */
  expectSessions(principal: string, ids: readonly string[]): void {
    expectSame(`sessions of ${principal}`, this.idsOf(principal).toSorted(), ids.toSorted());
  }

  /** The ids of the live sessions of a principal. */
  idsOf(principal: string): string[] {
    return this.#listed(PRINCIPAL_NAME_INDEX_NAME, principal).map(({ id }) => id);
  }

  /**
   * Begins a lookup. The returned function takes the result. `mayRepeat`: whether a session may come more than once.
   */
  lookUp(indexName: string, value: string) {
    const lookUp = this.#beginLookUp(indexName, value);
    return (records: readonly Pick<SessionRecord, 'id'>[], { mayRepeat = false } = {}): void => {
      this.#lookUps.delete(lookUp);
      const found = records.map(({ id }) => this.#sessions.find(({ ids }) => ids.some((each) => each.id === id)));
      const missing = [...lookUp.always].filter((session) => !found.includes(session));
      const isRepeated = (session: ModelSession, i: number) => !mayRepeat && found.indexOf(session) < i;
      const wrong = found.filter((session, i) => !session || !lookUp.ever.has(session) || isRepeated(session, i));
      expectSame('missing in the index', idsOf(missing), []);
      expectSame('wrongly found in the index, or twice', idsOf(wrong), []);
    };
  }

  /** Once every end is reported: what the index lists, in all ways to ask for it. */
  expectListed(indexName: string, value: string, { found, listed, count }: Listed): void {
    const expected = sortedIds(this.#listed(indexName, value));
    expectSame(`found under ${value}`, sortedIds(found), expected);
    expectSame(`listed under ${value}`, sortedIds(listed), expected);
    expectSame(`counted under ${value}`, count, expected.length);
    const times = listed.map(({ authenticatedAt, creationTime }) => authenticatedAt ?? creationTime);
    expectSame(
      `order of the list of ${value}`,
      times,
      times.toSorted((a, b) => b - a),
    );
    const attribute = indexName === PRINCIPAL_NAME_INDEX_NAME ? PRINCIPAL_ATTRIBUTE : indexName;
    const given = this.#valid.filter(({ attributes }) => attributes.get(attribute) === JSON.stringify(value));
    expectSame(`have ${value}`, sortedIds(given), expected);
  }

  /** Begins to end all that an index lists. The returned function is called once that is done. */
  endAll(indexName: string, value: string, except: readonly string[]): () => void {
    const lookUp = this.#beginLookUp(indexName, value);
    const times = new Map([...lookUp.always].map((session) => [session, session.signInTime]));
    const isExcepted = ({ ids }: ModelSession) => ids.some(({ id }) => except.includes(id));
    return () => {
      this.#afterEvents.push(() => {
        this.#lookUps.delete(lookUp);
        const left = [...lookUp.always].filter((each) => !isExcepted(each) && times.get(each) === each.signInTime);
        expectSame('not ended', idsOf(left), []);
      });
    };
  }

  /** A step has ended so many of the sessions that it lists by their ids and indexes. */
  expectEnded(total: number, lists: (id: string, indexes: ReadonlyMap<string, string>) => boolean): void {
    const among = this.#valid.filter(({ id, indexes }) => lists(id, indexes));
    const outdated = this.#outdated.filter(({ id, indexes }) => lists(id, indexes));
    this.#ends = { number: among.length, among, outdated, total };
  }

  /** All sessions end. A millisecond passes, because those that begin in this one may end as well. */
  endEvery(): void {
    if (this.traits.endsLater) this.#epoch = this.now;
    else for (const session of this.#alive) this.#end(session, 'deleted');
    this.now += 1;
    this.#notice();
  }

  /** A sweep ends what has begun until the epoch. */
  expectOlderEnded(): void {
    for (const session of this.#outdated) this.#end(session, 'deleted');
  }

  /** Adds the events that the last step has recorded. */
  expectRecorded(events: readonly ModelEvent[]): void {
    for (const event of events) {
      const predicted = this.#predicted.findIndex((each) => isDeepStrictEqual(each, event));
      if (predicted >= 0) this.#predicted.splice(predicted, 1);
      else if (!this.#endsBy(event)) this.#expectExpired(event);
    }
    expectSame('has not recorded', this.#predicted, []);
    this.#expectAllEnded();
    for (const [name, ids] of this.#byPrincipal()) {
      if (ids.length > this.limit) throw new Mismatch(`${name} has ${ids.length} sessions: ${ids.join(', ')}`);
    }
    for (const expectation of this.#afterEvents.splice(0)) expectation();
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

  /** Those that a load finds. */
  get #valid(): ModelSession[] {
    return this.#alive.filter((session) => !this.#isOutdated(session));
  }

  get #outdated(): ModelSession[] {
    return this.#alive.filter((session) => this.#isOutdated(session));
  }

  #isOutdated({ start }: ModelSession): boolean {
    return start <= this.#epoch;
  }

  #isOutdatedId(id: string): boolean {
    const session = this.#led(id);
    return session !== undefined && this.#isOutdated(session);
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
    return this.#valid.filter(({ indexes }) => indexes.get(indexName) === value);
  }

  /** The session of an id, which may have changed its id since. */
  #led(id: string): ModelSession | undefined {
    const isValid = (each: ModelSession['ids'][number]) => each.id === id && this.now < each.until + this.traits.lag;
    return this.#sessions.find(({ ids, isForgotten }) => !isForgotten && ids.some(isValid));
  }

  /** Whether a session that had this id goes on under another one, and not only because somebody has signed out. */
  #goesOn(id: string): boolean {
    const former = this.#led(id)?.ids ?? [];
    const marks = former.slice(
      former.findIndex((each) => each.id === id),
      -1,
    );
    return marks.some(({ was, is }) => is !== undefined || was === undefined);
  }

  #create(change: CreateSession): WriteReply {
    const { id, maxInactiveInterval, absoluteTimeout, attributes, indexes, presentedIds } = change;
    if (presentedIds.some((presented) => this.#goesOn(presented))) return { outcome: 'gone' };
    if (this.#led(id)) return { outcome: 'collision' };
    const refusal = this.#refusal(change);
    if (refusal) return refusal;
    const session = new ModelSession(id, this.now, maxInactiveInterval, absoluteTimeout);
    if (change.signsIn) session.authenticatedAt = this.now;
    apply(attributes, session.attributes);
    apply(indexes, session.indexes);
    this.#sessions.push(session);
    this.#predict('created', session);
    if (change.signsIn) this.#predict('signed-in', session);
    return { outcome: 'created', creationTime: this.now };
  }

  #change(change: Exclude<SessionChange, CreateSession>): WriteReply {
    const session = this.#led(change.id);
    const isRepeated = change.kind === 'update' && session && this.#wasGiven(session, change.id, change.newId);
    const stop = session && stopAfter(session, isRepeated ? change.newId! : change.id);
    if (stop && isRepeated) return { outcome: 'saved' };
    if (stop) {
      const isLeft = stop.is === undefined && isEnd(change);
      return change.kind === 'touch' || isLeft ? { outcome: 'gone' } : { outcome: 'gone', rotated: true };
    }
    if (!session || !this.#alive.includes(session)) return { outcome: 'gone' };
    if (isRepeated) return savedReply(change, session, false);
    const isForwarded = session.id !== change.id;
    switch (change.kind) {
      case 'update':
        return this.#update(withoutSealed(change, session), session) ?? savedReply(change, session, isForwarded);
      case 'touch':
        session.lastAccessedTime = this.now;
        return { outcome: isForwarded ? 'forwarded' : 'touched' };
      case 'delete':
        if (change.listed && session.indexes.get(change.listed.indexName) !== change.listed.value) {
          return { outcome: 'gone' };
        }
        this.#end(session, 'deleted');
        return { outcome: isForwarded ? 'forwarded' : 'deleted' };
    }
  }

  #update(change: UpdateSession, session: ModelSession): WriteReply | undefined {
    const { id, newId, expected, maxInactiveInterval: interval, absoluteTimeout } = change;
    const isForwarded = session.id !== id;
    const isMore = newId !== undefined || absoluteTimeout !== undefined || change.indexes.size > 0 || interval;
    if (isForwarded && isMore) return change.signIn ? { outcome: 'gone', rotated: true } : { outcome: 'gone' };
    if (change.signIn && this.#isOutdated(session)) return { outcome: 'gone' };
    if (expected && session.attributes.get(expected.name) !== expected.text) {
      return isForwarded
        ? { outcome: 'gone' }
        : { outcome: 'conflict', current: session.attributes.get(expected.name) };
    }
    const refusal = this.#refusal(change, session);
    if (refusal) return refusal;
    const { signIn } = change;
    const was = session.indexes.get(PRINCIPAL_NAME_INDEX_NAME);
    for (const name of session.attributes.keys()) if (signIn && !isKept(name, signIn)) session.attributes.delete(name);
    apply(change.attributes, session.attributes);
    apply(change.indexes, session.indexes);
    if (signIn || (change.signsOut && !isForwarded)) session.authenticatedAt = signIn && this.now;
    session.maxInactiveInterval = interval ?? session.maxInactiveInterval;
    if (absoluteTimeout !== undefined) session.absoluteEnd = endAfter(session.start, absoluteTimeout);
    if (!change.keepsIdle) session.lastAccessedTime = this.now;
    const setsEnd = !change.keepsIdle || interval !== undefined || absoluteTimeout !== undefined;
    if (setsEnd && session.end <= this.now) {
      this.#end(session, interval === 0 ? 'deleted' : 'expired');
    } else if (newId !== undefined) {
      const is = session.indexes.get(PRINCIPAL_NAME_INDEX_NAME);
      Object.assign(session.ids.at(-1)!, { until: this.now + FORWARDING_TIME, kept: signIn, was, is });
      session.ids.push({ id: newId, until: Infinity });
      this.#predict('id-changed', session, id);
      if (signIn) this.#predict('signed-in', session);
    }
    return undefined;
  }

  /** Whether a session is over with its new times. */
  #endsAtOnce(change: UpdateSession, session: ModelSession): boolean {
    const { signIn, keepsIdle, maxInactiveInterval: interval, absoluteTimeout } = change;
    if (keepsIdle && interval === undefined && absoluteTimeout === undefined) return false;
    const start = Math.max(
      session.creationTime,
      signIn ? this.now : change.signsOut ? 0 : (session.authenticatedAt ?? 0),
    );
    const absoluteEnd = absoluteTimeout === undefined ? session.absoluteEnd : endAfter(start, absoluteTimeout);
    const since = keepsIdle ? session.lastAccessedTime : this.now;
    return Math.min(endAfter(since, interval ?? session.maxInactiveInterval), absoluteEnd) <= this.now;
  }

  /** Why the limit of a change keeps it from being made. */
  #refusal(change: CreateSession | UpdateSession, own?: ModelSession): WriteReply | undefined {
    if (this.#room) return this.#roomlessness(this.#room, change, own) as WriteReply | undefined;
    const isOver = own && this.#endsAtOnce(change as UpdateSession, own);
    return isOver || this.#makesRoom(change, own) ? undefined : { outcome: 'refused' };
  }

  /** Why a change that was promised room cannot be made. */
  #roomlessness(room: Room, change: SignInChange, own?: ModelSession): StoreReply<WriteReply> | undefined {
    if (this.now > room.until) return { outcome: 'late' };
    if (!own || change.kind === 'create' || change.newId === undefined || this.#endsAtOnce(change, own))
      return undefined;
    const given = change.indexes.get(PRINCIPAL_NAME_INDEX_NAME);
    const principal = given === undefined ? own.indexes.get(PRINCIPAL_NAME_INDEX_NAME) : given;
    return principal && principal !== room.principal ? { outcome: 'unplaced', principal } : undefined;
  }

  /** Where its limit is decided in one step: what ends for a session. False: it is refused. */
  #makesRoom({ limit, indexes }: CreateSession | UpdateSession, own?: ModelSession): boolean {
    if (!limit || indexes.get(PRINCIPAL_NAME_INDEX_NAME) !== limit.principal) return true;
    const among = this.#listed(PRINCIPAL_NAME_INDEX_NAME, limit.principal).filter((each) => each !== own);
    const surplus = among.length + 1 - limit.atMost;
    if (limit.whenReached === 'refuse') return surplus <= 0;
    this.#ends = { number: Math.max(0, surplus), among, outdated: this.#outdated.filter((each) => each !== own) };
    return true;
  }

  /** Whether a session was given one id in place of another. */
  #wasGiven({ ids }: ModelSession, id: string, newId: string | undefined): boolean {
    return newId !== undefined && ids[ids.findIndex((each) => each.id === id) + 1]?.id === newId;
  }

  #end(session: ModelSession, type: 'deleted' | 'expired'): void {
    session.hasEnded = true;
    this.#predict(type, session);
  }

  /** Whether an event tells what the last step has ended. */
  #endsBy(event: ModelEvent): boolean {
    const { among = [], outdated = [] } = this.#ends ?? {};
    const session = [...among, ...outdated].find(({ id, hasEnded }) => id === event.sessionId && !hasEnded);
    if (!session || event.type !== 'deleted') return false;
    expectSame('recorded', event, this.#eventOf('deleted', session));
    session.hasEnded = true;
    return true;
  }

  #expectAllEnded(): void {
    if (!this.#ends) return;
    const { number, among, outdated, total } = this.#ends;
    this.#ends = undefined;
    const [ended, left] = [among.filter(({ hasEnded }) => hasEnded), among.filter(({ hasEnded }) => !hasEnded)];
    expectSame('ended', ended.length, number);
    const latest = Math.max(...ended.map(({ signInTime }) => signInTime));
    expectSame('stay, although they are older', idsOf(left.filter(({ signInTime }) => signInTime < latest)), []);
    const inAll = ended.length + outdated.filter(({ hasEnded }) => hasEnded).length;
    if (total !== undefined) expectSame('ended in all', inAll, total);
    this.#notice();
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
      principalName: attributes[PRINCIPAL_ATTRIBUTE] as string | undefined,
      attributes,
    };
  }

  #expectExpired(event: ModelEvent): void {
    const session = this.#over.find(({ id }) => id === event.sessionId);
    const isForgotten = session !== undefined && this.#isLost(session);
    expectSame('recorded', event, session && this.#eventOf('expired', session, undefined, isForgotten));
    if (session) Object.assign(session, { hasEnded: true, isForgotten });
  }

  /** Room that the ledger keeps for a principal besides that of these sessions. */
  #reservedFor(principal: string, sessions: readonly ModelSession[]): Room[] {
    const isOf = (id: string) => sessions.some(({ ids }) => ids.some((each) => each.id === id));
    const kept = [...this.#reservations].filter(([id, { until }]) => this.now <= until && !isOf(id));
    return kept.map(([, room]) => room).filter((room) => room.principal === principal);
  }

  /** Whether a change is one of a session that has ended, was rotated, or is to replace one that was. */
  #hasEverBeenGone(change: SignInChange): boolean {
    if (change.kind === 'update') {
      const session = this.#led(change.id);
      return !session || session.id !== change.id || !this.#alive.includes(session);
    }
    const isFormer = (id: string) => this.#sessions.some(({ ids }) => ids.slice(0, -1).some((each) => each.id === id));
    return change.presentedIds.some(isFormer);
  }

  #byPrincipal(): Map<string, string[]> {
    const byPrincipal = new Map<string, string[]>();
    for (const { id, indexes } of this.limit < Infinity ? this.#valid : []) {
      const name = indexes.get(PRINCIPAL_NAME_INDEX_NAME);
      if (name !== undefined) byPrincipal.set(name, [...(byPrincipal.get(name) ?? []), id]);
    }
    return byPrincipal;
  }

  #beginLookUp(indexName: string, value: string): LookUp {
    const listed = this.#listed(indexName, value);
    const lookUp = { indexName, value, ever: new Set(listed), always: new Set(listed) };
    this.#lookUps.add(lookUp);
    return lookUp;
  }

  /** The state may have changed during a lookup. */
  #notice(): void {
    for (const signIn of this.#signIns) {
      const { id, limit } = signIn.change;
      if (!limit) continue;
      const others = this.#listed(PRINCIPAL_NAME_INDEX_NAME, limit.principal).filter((each) => each.id !== id);
      const isOther = (each: SignIn) => each !== signIn && each.change.limit?.principal === limit.principal;
      const isListed = (each: SignIn) => others.some((other) => other.id === idAfter(each.change));
      const starting = [...this.#signIns].filter((each) => isOther(each) && !isListed(each));
      const left = this.#reservedFor(limit.principal, others);
      signIn.mostOthers = Math.max(signIn.mostOthers, others.length + starting.length + left.length);
    }
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

/** The rotation after an id across which nothing is forwarded. */
function stopAfter({ ids }: ModelSession, id: string): ModelId | undefined {
  return ids.slice(ids.findIndex((each) => each.id === id)).find(({ was, is }) => was !== is);
}

function isEnd(change: SessionChange): boolean {
  return change.kind === 'delete' || (change.kind === 'update' && change.maxInactiveInterval === 0);
}

function savedReply({ signIn }: UpdateSession, { authenticatedAt }: ModelSession, isForwarded: boolean): WriteReply {
  if (isForwarded) return { outcome: 'forwarded' };
  return signIn && authenticatedAt !== undefined ? { outcome: 'saved', authenticatedAt } : { outcome: 'saved' };
}

function bySessionId(records: readonly object[]): object[] {
  return records.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

function idAfter(change: CreateSession | UpdateSession): string {
  return (change.kind === 'update' ? change.newId : undefined) ?? change.id;
}

function sortedIds(sessions: readonly { readonly id: string }[]): string[] {
  return sessions.map(({ id }) => id).toSorted();
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
