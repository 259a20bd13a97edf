import { createHash } from 'node:crypto';
import {
  type ContentBounds,
  FORWARDING_TIME,
  isOwnAttribute,
  PRINCIPAL_ATTRIBUTE,
  type SessionTelemetry,
} from '@nest-session/core/internal';
import type {
  AttributeChanges,
  CreateReply,
  CreateSession,
  DeleteReply,
  DeleteSession,
  IndexChanges,
  SessionLimit,
  TouchReply,
  UpdateReply,
  UpdateSession,
} from '@nest-session/core/store';
import {
  type Claim,
  type ClaimReply,
  DEAD_LETTER_BYTES,
  defineScripts,
  type DueEntries,
  type DueEntry,
  type DueReply,
  loadScripts,
  type RunScript,
  toClaim,
  toDueEntries,
} from '@nest-session/redis-events/internal';
import type { Redis } from 'ioredis';
import type { ExpirationStoreName } from '../../configuration/expirations.options.js';
import type { ResolvedRedisSessionOptions } from '../../configuration/redis-session.options.js';
import { bytesIn } from '../../encryption/data-key.js';
import { DataKeyConflictError } from '../../encryption/session-encryption.error.js';
import type { EncryptedUpdate, NewDataKey } from '../../encryption/session-encryption.js';
import { ATTRIBUTE_FIELD, type SessionKeys } from '../../keys/session-keys.js';
import type { SessionPartitions } from '../../keys/session-partitions.js';
import { sourcesIn } from '../script-sources.js';

/** `refused`: the session was ended with others. No limit refuses one. */
export type TakeOverReply = 'created' | 'collision' | 'gone' | 'refused';

export type TakenOverSession = Omit<CreateSession, 'kind' | 'presentedIds'> & NewDataKey;

export type ScriptReply<Word extends string> = [outcome: Word, detail?: string | null];

type ResealedReply = [outcome: 'resealed', id: string, wrapped?: string | null];

/** `again`: the limit has ended some, and there are more. `late`: the time of its room has passed. */
type UnfinishedReply = { readonly outcome: 'again' | 'late' };

type UnplacedReply = { readonly outcome: 'unplaced'; readonly principal: string };

export type StoreReply<T> = T | UnfinishedReply | UnplacedReply;

type SaveReply = [...ScriptReply<StoreReply<UpdateReply>['outcome']>, more?: undefined] | ResealedReply;

/** Room for a session of a principal until a time, in epoch milliseconds by the clock of Redis. */
export interface Room {
  readonly until: number;
  /** The value in the index of principals; empty: there is room only for a session of nobody. */
  readonly principal: string;
}

/** A live session in an index: its id, PTTL of its shadow key, and the fields that list-sessions reads of its hash. */
export type ListedFields = [id: string, ttl: number, ...texts: (string | null)[]];

type Arguments = (string | number)[];

/** Where the scripts note the end of a session, how long they keep ended ones, and how much room dead letters have. */
export interface KeepingRules {
  /** @default 'buckets' */
  readonly store?: ExpirationStoreName;
  /** Milliseconds for which the session hash outlives the session, and is kept after the end was recorded. */
  readonly grace: number;
  readonly retention: number;
  /** The W3C traceparent of what causes a change now, for its event; undefined: none. */
  readonly traceparent?: (() => string | undefined) | undefined;
  /** `maxSize`: most bytes of the dead letters of a partition. */
  readonly deadLetters: { readonly maxSize: number };
}

export function keepingRules(
  { grace, events, expirations }: Pick<ResolvedRedisSessionOptions, 'grace' | 'events' | 'expirations'>,
  partitions: SessionPartitions,
  telemetry?: Pick<SessionTelemetry, 'traceparent'>,
): KeepingRules {
  const maxSize = partitions.shareOf(DEAD_LETTER_BYTES);
  const traceparent = telemetry && (() => telemetry.traceparent());
  return { grace, retention: events.retention, store: expirations.store, traceparent, deadLetters: { maxSize } };
}

/** The place of a session in the ledger of a principal. `at`: when it was taken, or asked for since then. */
export interface LedgerPlace {
  readonly id: string;
  readonly at: string;
}

/** What a session needs a place for: see reserve-place.lua. */
export interface ReservationRequest {
  readonly id: string;
  /** The id that it has now; undefined: it is new. */
  readonly replaced?: string | undefined;
  /** Undefined: the session is one of the principal's already. */
  readonly atMost?: number | undefined;
  readonly whenReached: 'end-oldest' | 'refuse';
  readonly duration: number;
  /** A ledger that was made before, in epoch milliseconds, may lack sessions. @default none does */
  readonly since?: string | undefined;
}

/** What a sign-in has learned since it asked: what is over; all sessions, where there is no ledger. */
export interface PlaceFindings {
  readonly over?: readonly LedgerPlace[];
  readonly sessions?: readonly (readonly [id: string, at: string])[];
}

/** As reserve-place.lua replies it. `latest` in epoch milliseconds. `wasKnown`: the ledger had the id before. */
export interface Reservation {
  readonly word: ReserveReply[0];
  readonly latest: number;
  readonly wasKnown: boolean;
  readonly ending: readonly LedgerPlace[];
  readonly others: readonly LedgerPlace[];
}

type ReserveReply =
  | ['unknown' | 'busy']
  | ['refused', others: string[]]
  | ['room', latest: number, known: number, ending: string[], others: string[]];

export type SettlePlaceReply = 'done';

// Milliseconds after the last sign-in of a principal. After that, the indexes are asked again.
const LEDGER_KEPT_FOR = 7 * 24 * 3600 * 1000;

// 30 days, as a dead letter by default: time enough to look at it.
const STRAY_KEPT_FOR = 30 * 86_400_000;

function scriptsIn(store: ExpirationStoreName) {
  const scripts = loadScripts(sourcesIn(store), 'session', 'limits');
  // For a save that can only end the session: like every end, it runs when Redis is out of memory.
  const ending = (source: string) => source.replace('#!lua', '#!lua flags=allow-oom');
  const [change, rotation] = [scripts['change-session'], scripts['rotate-session']];
  return { ...scripts, 'end-changed-session': ending(change), 'end-rotated-session': ending(rotation) };
}

const SCRIPTS = { buckets: scriptsIn('buckets'), 'sorted-set': scriptsIn('sorted-set') };

/** The scripts for sessions and ledgers, on one connection. All keys of a call are in one partition. */
export class SessionScripts {
  readonly #run: RunScript<keyof typeof SCRIPTS.buckets>;

  constructor(
    client: Redis,
    private readonly partitions: SessionPartitions,
    private readonly rules: KeepingRules,
  ) {
    this.#run = defineScripts(client, SCRIPTS[rules.store ?? 'buckets']);
  }

  /** `room`: where the limit is not for the script to enforce. */
  async create(change: CreateSession & NewDataKey, room?: Room): Promise<StoreReply<CreateReply>> {
    const { id, presentedIds, maxInactiveInterval, absoluteTimeout, signsIn, indexes } = change;
    const partition = this.partitions.of(id);
    const keys = newKeysOf(partition, id);
    for (const presented of presentedIds) keys.push(partition.forwardingMark(presented));
    const args = this.#argumentsOfChange(partition, id);
    args.push(maxInactiveInterval, absoluteTimeout);
    args.push(signsIn ? whoOf(change, change.dataKey) : '', limitArgument(change, room), ageOf(change), indexes.size);
    pushIndexes(args, indexes);
    pushNewFields(args, change);
    return toCreateReply(await this.#run('create-session', keys, args));
  }

  /** `timeToLive`: PTTL of the other library's entry. `markedFor`: how long none is taken over again; -1: for ever. */
  async takeOver(session: TakenOverSession, timeToLive: number, markedFor = timeToLive): Promise<TakeOverReply> {
    const { id, maxInactiveInterval, absoluteTimeout, indexes } = session;
    const partition = this.partitions.of(id);
    const keys = [...newKeysOf(partition, id), partition.takeoverMark(id), partition.epoch];
    for (const [name, value] of indexes) if (value !== null) keys.push(partition.revocationMark(name, value));
    const args: Arguments = [partition.prefix, this.#trace, id, this.rules.grace];
    args.push(maxInactiveInterval, absoluteTimeout, timeToLive, markedFor, indexes.size);
    pushIndexes(args, indexes);
    pushNewFields(args, session);
    const [word] = await this.#run<[TakeOverReply]>('take-over-session', keys, args);
    return word;
  }

  /** @throws DataKeyConflictError when the session has another data key than the change, or none that it can have */
  save(change: EncryptedUpdate, room?: Room): Promise<StoreReply<UpdateReply>> {
    const reply = this.#save(change, room);
    const ends = change.maxInactiveInterval === 0;
    return reply.then(ends ? (toEndReply as typeof toUpdateReply) : toUpdateReply);
  }

  #save(change: EncryptedUpdate, room: Room | undefined): Promise<unknown> {
    const { id, newId = id, maxInactiveInterval, absoluteTimeout } = change;
    const partition = this.partitions.of(id);
    const keys = keysOf(partition, id);
    if (onlyChangesAttributes(change)) {
      const grace = change.keepsIdle ? '' : this.rules.grace;
      const args: Arguments = [partition.prefix, id, grace, this.rules.retention];
      pushAttributeChange(args, change);
      return this.#run('save-attributes', keys, args);
    }
    const args = this.#argumentsOfChange(partition, id);
    const ends = maxInactiveInterval === 0 || absoluteTimeout === 0;
    if (newId === id) {
      // So the call waits while the slot moves to another node.
      if (change.indexes.size > 0) keys.push(partition.forwardingMark(id));
      pushChange(args, change, room);
      return this.#run(ends ? 'end-changed-session' : 'change-session', keys, args);
    }
    keys.push(partition.forwardingMark(id));
    keys.push(partition.session(newId), partition.shadow(newId), partition.forwardingMark(newId));
    args.push(newId, FORWARDING_TIME, howToLeave(change));
    pushChange(args, change, room);
    return this.#run(ends ? 'end-rotated-session' : 'rotate-session', keys, args);
  }

  async touch(id: string): Promise<TouchReply> {
    const partition = this.partitions.of(id);
    const args = [partition.prefix, id, this.rules.grace];
    const [outcome] = await this.#run<ScriptReply<TouchReply['outcome']>>('touch-session', keysOf(partition, id), args);
    return { outcome };
  }

  async delete(
    id: string,
    { listed, reason = 'revoked' }: Pick<DeleteSession, 'listed' | 'reason'> = {},
  ): Promise<DeleteReply> {
    const partition = this.partitions.of(id);
    const keys = keysOf(partition, id);
    if (listed) keys.push(partition.index(listed.indexName, listed.value));
    const args = [partition.prefix, this.#trace, id, this.rules.retention, reason];
    return toEndReply(await this.#run('delete-session', keys, args)) as DeleteReply;
  }

  /** About `size` entries between `after` and `before`, the highest first. `last`: undefined on the last page. */
  async list(
    partition: SessionKeys,
    index: string,
    size: number,
    { before, after }: { readonly before?: string | undefined; readonly after?: string | undefined } = {},
  ) {
    const bounds = [before === undefined ? '+inf' : `(${before}`, after === undefined ? '-inf' : `(${after}`];
    const args = [partition.prefix, ...bounds, size];
    type Reply = [last: string, latest: string, ...ListedFields[]];
    const [last, latest, ...sessions] = await this.#run<Reply>('list-sessions', [index], args);
    return { last: last || undefined, latest: latest || undefined, sessions };
  }

  /** `latest`: of the batch before; undefined: none is left. `problem`: of a stray key that keeps `foreign` alive. */
  async endListed(
    partition: SessionKeys,
    index: string,
    size: number,
    { latest = '', stays = [] }: { readonly latest?: string | undefined; readonly stays?: readonly string[] } = {},
  ) {
    const keys = [partition.bucketList, partition.events, index];
    const args = [partition.prefix, this.#trace, this.rules.retention, latest, size, ...stays];
    type Reply = [ended: number, latest: string, problem: string, ...foreign: string[]];
    const [ended, next, problem, ...foreign] = await this.#run<Reply>('end-sessions', keys, args);
    return { ended, latest: next || undefined, problem: problem || undefined, foreign };
  }

  /** Sets aside for 30 days what is in the place of an index. `listed`: how many of its sessions the new one has. */
  async setAsideIndex(partition: SessionKeys, name: string, hash: string) {
    const key = partition.strayIndex(name, hash);
    const keys = [partition.index(name, hash), key];
    const args = [partition.prefix, STRAY_KEPT_FOR];
    const [type, listed = 0] = (await this.#run<[string, number] | null>('set-aside-index', keys, args)) ?? [];
    return type === undefined ? undefined : { type, key, listed };
  }

  /** Raises the epoch of a partition, by default to now. Returns its epoch, which never goes back. */
  raiseEpoch({ epoch }: SessionKeys, at?: number): Promise<string> {
    return this.#run('raise-epoch', [epoch], [at ?? '']);
  }

  /** Ends those sessions that the epoch of their partition makes invalid. Returns their number. */
  endOlder({ bucketList, events, epoch, prefix }: SessionKeys, ids: readonly string[]): Promise<number> {
    return this.#run('end-older-sessions', [bucketList, events, epoch], [prefix, this.rules.retention, ...ids]);
  }

  async finishEpoch({ epoch }: SessionKeys, at: number): Promise<void> {
    await this.#run('finish-epoch', [epoch], [at]);
  }

  /** `duration` in milliseconds. */
  async leaveMark(name: string, value: number, duration: number): Promise<void> {
    await this.#run('leave-mark', [this.partitions.of(name).mark(name)], [value, duration]);
  }

  /** `markedFor`: as in `takeOver()`. */
  async markTakenOver(id: string, markedFor: number): Promise<void> {
    await this.#run('leave-takeover-mark', [this.partitions.of(id).takeoverMark(id)], [markedFor]);
  }

  /** `place`: the minute of their bucket; 'ends': the sorted set; '': a key event named them. */
  async claimExpired(partition: SessionKeys, members: readonly string[], place = ''): Promise<Claim[]> {
    const sessions = members.flatMap((member) => {
      const id = partition.idOfMember(member);
      return [partition.session(id), partition.shadow(id)];
    });
    const keys = [partition.bucketList, partition.events, partition.deadLetters, ...sessions];
    const args = [partition.prefix, this.rules.retention, this.rules.deadLetters.maxSize, place, ...members];
    return (await this.#run<ClaimReply[]>('claim-expired', keys, args)).map(toClaim);
  }

  /** `ahead`: also what is due in so many milliseconds; `after`: the last session of the call before. */
  async claimDue(partition: SessionKeys, size: number, ahead = 0, after?: DueEntry): Promise<DueEntries> {
    const { bucketList, events, deadLetters, prefix } = partition;
    const args = [prefix, this.rules.retention, this.rules.deadLetters.maxSize, size, ahead];
    args.push(after?.time ?? '', after?.id ?? '');
    return toDueEntries(await this.#run<DueReply>('claim-from-sorted-set', [bucketList, events, deadLetters], args));
  }

  /** Counts the sessions of at most `most` buckets, from a place on; with the first, those of the sorted set. */
  async lookAt({ bucketList, ends, prefix }: SessionKeys, first: number, most: number) {
    const args = [prefix, first, most];
    type Reply = [sessions: number, overdue: number, buckets: number];
    const [sessions, overdue, buckets] = await this.#run<Reply>('look-at-sessions', [bucketList, ends], args);
    return { sessions, overdue, buckets };
  }

  /** Takes a place in the ledger of a principal, or looks again what must end for the session that has it. */
  async reserve(
    principal: string,
    request: ReservationRequest,
    { over = [], sessions }: PlaceFindings = {},
  ): Promise<Reservation> {
    const { id, replaced = '', atMost = '', whenReached, duration, since = 0 } = request;
    const args = [id, replaced, atMost, whenReached, duration, LEDGER_KEPT_FOR, sessions ? 1 : 0, since, over.length];
    args.push(...over.flatMap((place) => [place.id, place.at]), ...(sessions ?? []).flat());
    const reply = await this.#run<ReserveReply>('reserve-place', [this.#ledgerOf(principal)], args);
    const none: Reservation = { word: reply[0], latest: 0, wasKnown: false, ending: [], others: [] };
    if (reply[0] === 'refused') return { ...none, others: toPlaces(reply[1]) };
    if (reply[0] !== 'room') return none;
    const [word, latest, known, ending, others] = reply;
    return { word, latest, wasKnown: known === 1, ending: toPlaces(ending), others: toPlaces(others) };
  }

  /** Ends what `reserve()` has begun. `over`: what has ended for this session, and its former id. */
  settle(principal: string, id: string, isStored: boolean, over: readonly string[] = []): Promise<SettlePlaceReply> {
    return this.#run('settle-place', [this.#ledgerOf(principal)], [id, isStored ? 1 : 0, ...over]);
  }

  /** The ids of live sessions of a principal, whose index this is. */
  find({ prefix, epoch }: SessionKeys, index: string, ids: readonly string[]): Promise<string[]> {
    return this.#run('find-sessions', [index, epoch], [prefix, ...ids]);
  }

  #ledgerOf(principal: string): string {
    return this.partitions.of(principal).ledger(principal);
  }

  get #trace(): string {
    return this.rules.traceparent?.() ?? '';
  }

  #argumentsOfChange({ prefix }: SessionKeys, id: string): Arguments {
    return [prefix, this.#trace, id, this.rules.grace, this.rules.retention];
  }
}

export function toUpdateReply(reply: unknown): StoreReply<UpdateReply> {
  const [outcome, detail, wrapped] = reply as SaveReply;
  if (outcome === 'resealed') throw new DataKeyConflictError(detail, wrapped ?? undefined);
  if (outcome === 'full') return { outcome, bound: detail as keyof ContentBounds };
  if (outcome === 'conflict') return { outcome, current: detail ?? undefined };
  if (outcome === 'unplaced') return { outcome, principal: detail ?? '' };
  if (outcome === 'gone') return detail ? { outcome, rotated: true } : { outcome };
  return outcome === 'saved' && detail ? { outcome, authenticatedAt: Number(detail) } : { outcome };
}

/** Where nobody is signed in since a rotation, there was nothing to end. */
export function toEndReply(reply: unknown): StoreReply<UpdateReply> | DeleteReply {
  const [outcome, word] = reply as ScriptReply<DeleteReply['outcome']>;
  return outcome === 'gone' && word === 'left' ? { outcome } : toUpdateReply(reply);
}

function toPlaces(reply: readonly string[]): LedgerPlace[] {
  return Array.from({ length: reply.length / 2 }, (_, i) => ({ id: reply[2 * i]!, at: reply[2 * i + 1]! }));
}

export function toCreateReply(reply: unknown): StoreReply<CreateReply> {
  const [outcome, creationTime] = reply as ScriptReply<CreateReply['outcome'] | 'again' | 'late'>;
  return outcome === 'created' ? { outcome, creationTime: Number(creationTime) } : { outcome };
}

function keysOf(partition: SessionKeys, id: string): string[] {
  return [partition.bucketList, partition.events, partition.session(id), partition.shadow(id)];
}

/** The first keys of every script that stores a new session. */
function newKeysOf(partition: SessionKeys, id: string): string[] {
  return [...keysOf(partition, id), partition.forwardingMark(id)];
}

/** With an empty value the session leaves the index. */
function pushIndexes(args: Arguments, changes: IndexChanges): void {
  for (const [name, value] of changes) args.push(name, value ?? '');
}

/** `size`: for the bounds, how many bytes it holds at most. */
function pushNewFields(args: Arguments, session: TakenOverSession): void {
  const { attributes, bounds, dataKey } = session;
  args.push(...fieldsOf(session).set);
  if (isBounded(bounds)) args.push('size', sizeOf(attributes));
  if (dataKey !== undefined) args.push('dataKey', dataKey);
}

/** So that save-attributes can make it. Most saves are such. */
function onlyChangesAttributes(change: EncryptedUpdate): boolean {
  const { newId, maxInactiveInterval, absoluteTimeout, signsOut, dataKeys, indexes } = change;
  if (newId !== undefined || maxInactiveInterval !== undefined || absoluteTimeout !== undefined) return false;
  return !signsOut && !dataKeys && indexes.size === 0;
}

/** Whether a session with a new id is cleared, or its old id leads nowhere: see rotate-session.lua. */
export function howToLeave({ clears, closes }: UpdateSession): number {
  if (clears) return 1;
  return closes ? 2 : 0;
}

/** The change as save-attributes takes it. Each argument costs time, and most saves have no details. */
function pushAttributeChange(args: Arguments, change: UpdateSession): void {
  const { set, removed } = fieldsOf(change);
  args.push(set.length / 2, ...set);
  const hasDetails = change.expected !== undefined || removed.length > 0;
  if (hasDetails || isBounded(change.bounds)) args.push(...boundsOf(change));
  if (hasDetails) args.push(...conditionOf(change), ...removed);
}

/** The change as library/change.lua takes it. */
export function pushChange(args: Arguments, change: EncryptedUpdate, room: Room | undefined): void {
  const { maxInactiveInterval = '', absoluteTimeout = '', keepsIdle, signsOut, signIn, indexes } = change;
  const { set, removed } = fieldsOf(change);
  // The script decides which one it stores, because it knows the id that the session has in the end.
  const dataKeys = [...(change.dataKeys ?? [])].flat();
  args.push(maxInactiveInterval, absoluteTimeout, keepsIdle ? 1 : 0, signsOut ? 1 : 0);
  args.push(signIn ? JSON.stringify(signIn) : '', ...conditionOf(change), ...boundsOf(change));
  args.push(limitArgument(change, room), indexes.size, dataKeys.length / 2, set.length / 2, removed.length);
  args.push(signIn ? whoOf(change, change.dataKeys?.get(change.newId ?? change.id)) : '', ageOf(change));
  pushIndexes(args, indexes);
  args.push(...dataKeys, ...set, ...removed);
}

/** Who signs in, as the event keeps it: the fields of the session that say so, and the data key that they need. */
function whoOf(
  { attributes, device }: Pick<CreateSession, 'attributes' | 'device'>,
  dataKey: string | undefined,
): string {
  const name = attributes.get(PRINCIPAL_ATTRIBUTE) ?? undefined;
  return JSON.stringify({ [ATTRIBUTE_FIELD + PRINCIPAL_ATTRIBUTE]: name, device, dataKey });
}

/** How long ago the request began, in whole milliseconds as the script is sent, so that no two clocks are compared. */
export function ageOf({ begunAt }: Pick<CreateSession, 'begunAt'>): number | '' {
  return begunAt === undefined ? '' : Math.ceil(performance.now() - begunAt);
}

function limitArgument({ limit }: { readonly limit?: SessionLimit | undefined }, room?: Room): string {
  if (room) return `until ${room.until} ${room.principal}`;
  return limit ? `${limit.atMost} ${limit.whenReached}` : '';
}

function fieldsOf({ attributes, device }: Pick<UpdateSession, 'attributes' | 'device'>) {
  const set: string[] = [];
  const removed: string[] = [];
  for (const [name, text] of attributes) {
    if (text === null) removed.push(ATTRIBUTE_FIELD + name);
    else set.push(ATTRIBUTE_FIELD + name, text);
  }
  if (device !== undefined) set.push('device', device);
  return { set, removed };
}

/** The bytes of the attributes that count for the bounds, as they were before an encryption. */
function sizeOf(attributes: AttributeChanges): number {
  let size = 0;
  for (const [name, text] of attributes) {
    if (text !== null && !isOwnAttribute(name)) size += Buffer.byteLength(name) + bytesIn(text);
  }
  return size;
}

function isBounded(bounds: ContentBounds | undefined): bounds is ContentBounds {
  return bounds !== undefined && (bounds.maxAttributes < Infinity || bounds.maxSessionSize < Infinity);
}

function boundsOf({ bounds }: Pick<UpdateSession, 'bounds'>): Arguments {
  if (!isBounded(bounds)) return ['', ''];
  return [bounds.maxAttributes, bounds.maxSessionSize].map((most) => Math.min(most, Number.MAX_SAFE_INTEGER));
}

/** By its SHA-1, the only hash that scripts have. A collision takes bytes that are not UTF-8, and loses one update. */
function conditionOf({ expected }: UpdateSession): [field: string, hash: string] {
  if (expected === undefined) return ['', ''];
  const hash = expected.text === undefined ? '' : createHash('sha1').update(expected.text).digest('hex');
  return [ATTRIBUTE_FIELD + expected.name, hash];
}
