import { FORWARDING_TIME } from '@nest-session/core/internal';
import type {
  CreateReply,
  CreateSession,
  DeleteReply,
  DeleteSession,
  TouchReply,
  UpdateReply,
} from '@nest-session/core/store';
import type { Redis } from 'ioredis';
import {
  type Claim,
  type ClaimReply,
  defineScripts,
  type DueEntries,
  type DueEntry,
  type DueReply,
  loadScripts,
  type ScriptsByName,
  toClaim,
  toDueEntries,
} from '@nest-session/redis-events/internal';
import { sourcesIn } from '../script-sources.js';
import type { ExpirationStoreName } from '../../configuration/expirations.options.js';
import type { EncryptedUpdate } from '../../encryption/encrypted-session.js';
import type { NewDataKey } from '../../encryption/session-encryption.js';
import type { SessionKeys } from '../../keys/session-keys.js';
import type { SessionPartitions } from '../../keys/session-partitions.js';
import {
  ageOf,
  keysOf,
  limitArgument,
  newKeysOf,
  howToLeave,
  onlyChangesAttributes,
  pushAttributeChange,
  pushChange,
  pushIndexes,
  pushNewFields,
  type Room,
  type ScriptReply,
  type StoreReply,
  toCreateReply,
  toEndReply,
  toUpdateReply,
  whoOf,
} from './session-arguments.js';
import type { KeepingRules } from './keeping-rules.js';
import type { EndedBatch, ListedPage, ListReply, SessionsLook, StrayIndex } from './listed-session.js';

/** The outcome of a takeover. `refused`: the session was ended with others. No limit refuses one. */
export type TakeOverReply = 'created' | 'collision' | 'gone' | 'refused';

/** A session of another library. */
export type TakenOverSession = Omit<CreateSession, 'kind' | 'presentedIds'> & NewDataKey;

// 30 days, as a dead letter by default: time enough to look at it.
const STRAY_KEPT_FOR = 30 * 86_400_000;

const FILES = {
  createSession: 'create-session',
  takeOverSession: 'take-over-session',
  saveAttributes: 'save-attributes',
  changeSession: 'change-session',
  rotateSession: 'rotate-session',
  touchSession: 'touch-session',
  deleteSession: 'delete-session',
  listSessions: 'list-sessions',
  endSessions: 'end-sessions',
  setAsideIndex: 'set-aside-index',
  raiseEpoch: 'raise-epoch',
  endOlderSessions: 'end-older-sessions',
  claimExpired: 'claim-expired',
  claimDue: 'claim-due',
  lookAtSessions: 'look-at-sessions',
};

function scriptsIn(store: ExpirationStoreName) {
  const scripts = loadScripts(sourcesIn(store), 'session', FILES);
  // For a save that can only end the session: like every end, it runs when Redis is out of memory.
  const ending = (source: string) => source.replace('#!lua', '#!lua flags=allow-oom');
  const { changeSession, rotateSession } = scripts;
  return { ...scripts, endChangedSession: ending(changeSession), endRotatedSession: ending(rotateSession) };
}

const SOURCES = { buckets: scriptsIn('buckets'), 'sorted-set': scriptsIn('sorted-set') };

type ScriptName = keyof typeof SOURCES.buckets;

/**
 * The scripts that change sessions, on one connection. Each is one typed function, and each call one round trip. All
 * keys of a call are in one partition: a new id is generated until it is in the partition of the id that it replaces.
 */
export class SessionScripts {
  readonly #scripts: ScriptsByName<ScriptName>;

  constructor(
    client: Redis,
    private readonly partitions: SessionPartitions,
    private readonly rules: KeepingRules,
  ) {
    this.#scripts = defineScripts(client, SOURCES[rules.store ?? 'buckets']);
  }

  /** `room`: where the limit is not for this script to enforce. */
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
    return toCreateReply(await this.#run('createSession', keys, args));
  }

  /**
   * `timeToLive`: how long the entry of the other library would live, in milliseconds, as PTTL replies. `markedFor`:
   * for how long no entry of it is taken over again; -1: for ever.
   */
  async takeOver(session: TakenOverSession, timeToLive: number, markedFor = timeToLive): Promise<TakeOverReply> {
    const { id, maxInactiveInterval, absoluteTimeout, indexes } = session;
    const partition = this.partitions.of(id);
    const keys = [...newKeysOf(partition, id), partition.takeoverMark(id), partition.epoch];
    for (const [name, value] of indexes) if (value !== null) keys.push(partition.revocationMark(name, value));
    const args = [
      partition.prefix,
      this.#trace,
      id,
      this.rules.grace,
      maxInactiveInterval,
      absoluteTimeout,
      timeToLive,
      markedFor,
      indexes.size,
    ];
    pushIndexes(args, indexes);
    pushNewFields(args, session);
    const [word] = (await this.#run('takeOverSession', keys, args)) as [TakeOverReply];
    return word;
  }

  /**
   * `room`: as in `create()`.
   * @throws DataKeyConflictError when the session has another data key than the change, or none that it can have
   */
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
      const args: (string | number)[] = [partition.prefix, id, grace, this.rules.retention];
      pushAttributeChange(args, change);
      return this.#run('saveAttributes', keys, args);
    }
    const args = this.#argumentsOfChange(partition, id);
    const ends = maxInactiveInterval === 0 || absoluteTimeout === 0;
    if (newId === id) {
      // So the call waits while the slot moves to another node.
      if (change.indexes.size > 0) keys.push(partition.forwardingMark(id));
      pushChange(args, change, room);
      return this.#run(ends ? 'endChangedSession' : 'changeSession', keys, args);
    }
    keys.push(partition.forwardingMark(id));
    keys.push(partition.session(newId), partition.shadow(newId), partition.forwardingMark(newId));
    args.push(newId, FORWARDING_TIME, howToLeave(change));
    pushChange(args, change, room);
    return this.#run(ends ? 'endRotatedSession' : 'rotateSession', keys, args);
  }

  async touch(id: string): Promise<TouchReply> {
    const partition = this.partitions.of(id);
    const args = [partition.prefix, id, this.rules.grace];
    const reply = await this.#run('touchSession', keysOf(partition, id), args);
    const [outcome] = reply as ScriptReply<TouchReply['outcome']>;
    return { outcome };
  }

  /** `listed`: where the session must be listed. */
  async delete(
    id: string,
    { listed, reason = 'revoked' }: Pick<DeleteSession, 'listed' | 'reason'> = {},
  ): Promise<DeleteReply> {
    const partition = this.partitions.of(id);
    const keys = keysOf(partition, id);
    if (listed) keys.push(partition.index(listed.indexName, listed.value));
    const args = [partition.prefix, this.#trace, id, this.rules.retention, reason];
    return toEndReply(await this.#run('deleteSession', keys, args)) as DeleteReply;
  }

  /**
   * A page of an index: about `size` of the entries whose score is lower than `before` and higher than `after`, the
   * highest first.
   */
  async list(
    partition: SessionKeys,
    index: string,
    size: number,
    { before, after }: { readonly before?: string | undefined; readonly after?: string | undefined } = {},
  ): Promise<ListedPage> {
    const bounds = [before === undefined ? '+inf' : `(${before}`, after === undefined ? '-inf' : `(${after}`];
    const args = [partition.prefix, ...bounds, size];
    const [last, latest, ...sessions] = (await this.#run('listSessions', [index], args)) as ListReply;
    return { last: last || undefined, latest: latest || undefined, sessions };
  }

  /** Ends a batch of the sessions of an index. `latest`: of the reply of the batch before; undefined for the first. */
  async endListed(
    partition: SessionKeys,
    index: string,
    size: number,
    { latest = '', stays = [] }: { readonly latest?: string | undefined; readonly stays?: readonly string[] } = {},
  ): Promise<EndedBatch> {
    const keys = [partition.bucketList, partition.events, index];
    const args = [partition.prefix, this.#trace, this.rules.retention, latest, size, ...stays];
    const reply = (await this.#run('endSessions', keys, args)) as [number, string, string, ...string[]];
    const [ended, next, problem, ...foreign] = reply;
    return { ended, latest: next || undefined, problem: problem || undefined, foreign };
  }

  /**
   * Makes room for an index where a key of another type stands in its place. `key`: where that is for 30 days;
   * `listed`: how many of the sessions that it had the new index lists. Undefined where there is no such key.
   */
  async setAsideIndex(partition: SessionKeys, name: string, hash: string): Promise<StrayIndex | undefined> {
    const key = partition.strayIndex(name, hash);
    const args = [partition.prefix, STRAY_KEPT_FOR];
    const reply = await this.#run('setAsideIndex', [partition.index(name, hash), key], args);
    if (!reply) return undefined;
    const [type, listed] = reply as [string, number];
    return { type, key, listed };
  }

  /** Raises the epoch of a partition to a time in ms, by default now. Returns its epoch, which never goes back. */
  async raiseEpoch({ epoch }: SessionKeys, at?: number): Promise<string> {
    return (await this.#run('raiseEpoch', [epoch], [at ?? ''])) as string;
  }

  /** Ends those of some sessions that the epoch of their partition makes invalid. Returns their number. */
  async endOlder({ bucketList, events, epoch, prefix }: SessionKeys, ids: readonly string[]): Promise<number> {
    return (await this.#run(
      'endOlderSessions',
      [bucketList, events, epoch],
      [prefix, this.rules.retention, ...ids],
    )) as number;
  }

  /**
   * `place`: the minute of the bucket with the members; 'ends': the sorted set should have them; '': a key event named
   * them.
   */
  async claimExpired(partition: SessionKeys, members: readonly string[], place = ''): Promise<Claim[]> {
    const sessions = members.flatMap((member) => {
      const id = partition.idOfMember(member);
      return [partition.session(id), partition.shadow(id)];
    });
    const keys = [partition.bucketList, partition.events, partition.deadLetters, ...sessions];
    const args = [partition.prefix, this.rules.retention, this.rules.deadLetters.maxSize, place, ...members];
    return ((await this.#run('claimExpired', keys, args)) as ClaimReply[]).map(toClaim);
  }

  /**
   * Takes sessions that are due out of the sorted set, at most `size`. `ahead`: also those that are due in so many
   * milliseconds; `after`: the last session of the call before.
   */
  async claimDue(partition: SessionKeys, size: number, ahead = 0, after?: DueEntry): Promise<DueEntries> {
    const { bucketList, events, deadLetters, prefix } = partition;
    const args = [
      prefix,
      this.rules.retention,
      this.rules.deadLetters.maxSize,
      size,
      ahead,
      after?.time ?? '',
      after?.id ?? '',
    ];
    return toDueEntries((await this.#run('claimDue', [bucketList, events, deadLetters], args)) as DueReply);
  }

  /** Looks at buckets of a partition from the place `first` on, at most `most`; with the first, at the sorted set. */
  async lookAt({ bucketList, ends, prefix }: SessionKeys, first: number, most: number): Promise<SessionsLook> {
    const reply = await this.#run('lookAtSessions', [bucketList, ends], [prefix, first, most]);
    const [sessions, overdue, buckets] = reply as [number, number, number];
    return { sessions, overdue, buckets };
  }

  /** What causes a change, for its event. */
  get #trace(): string {
    return this.rules.traceparent?.() ?? '';
  }

  /** The first ones of a change that may record an event. */
  #argumentsOfChange({ prefix }: SessionKeys, id: string): (string | number)[] {
    return [prefix, this.#trace, id, this.rules.grace, this.rules.retention];
  }

  #run(script: ScriptName, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    return this.#scripts[script](keys.length, keys, args);
  }
}
