import { randomInt } from 'node:crypto';
import { Inject, Injectable, Optional } from '@nestjs/common';
import { isWellFormedIdOrToken, traced } from '@nest-session/core/internal';
import { type SessionSweepContext, sweepChannel } from '@nest-session/core/telemetry';
import {
  BackgroundLimiter,
  type Claim,
  type DueEntry,
  type DueList,
  DuePoller,
  type DueSweeper,
  InjectConnection,
  isReply,
  nodeWith,
  type PartitionKeys,
  type Partitions,
  partitionsByNode,
  type PartitionSignals,
  redisTime,
  SweepCounter,
  type SweepOptions,
  type SweepResult,
} from '@nest-session/redis-events/internal';
import type { Redis } from 'ioredis';
import type { ResolvedRedisSessionOptions } from '../configuration/redis-session.options.js';
import { BACKGROUND_SESSION_SCRIPTS, REDIS_SESSION_OPTIONS } from '../configuration/redis-session.tokens.js';
import { pages, type ReadPage, storedSessionIds } from '../keys/scan-pages.js';
import type { SessionKeys } from '../keys/session-keys.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import type { SessionScripts } from '../scripts/session/session.scripts.js';

/** The name of the cleanup job in `SchedulerRegistry`. */
export const SESSION_CLEANUP_JOB = 'session-cleanup';

/** Nothing provides it here: another module makes its own sweeper. */
const OTHER_STORES = Symbol('OTHER_STORES');

/**
 * Finds the sessions that have expired, and claims them, wherever their ends are noted, also after an outage or a clock
 * step. Any number of instances may sweep at once: a script claims each session once.
 */
@Injectable()
export class SessionExpirationSweeper implements DueSweeper<SessionKeys> {
  /** @internal */
  readonly what = 'sessions';
  readonly #stores: readonly Pick<DueSweeper<SessionKeys>, 'sweep'>[];

  /** @internal `RedisSessionModule` does this: inject the sweeper. @param stores where ends are noted */
  constructor(
    @InjectConnection('background') private readonly client: Redis,
    @Inject(BACKGROUND_SESSION_SCRIPTS) scripts: SessionScripts,
    @Inject(SessionPartitions) private readonly partitions: Pick<SessionPartitions, 'all' | 'namespace'>,
    @Inject(REDIS_SESSION_OPTIONS) { batchSize }: Pick<ResolvedRedisSessionOptions, 'batchSize'>,
    @Inject(BackgroundLimiter) limiter: BackgroundLimiter,
    @Optional() @Inject(OTHER_STORES) stores?: readonly Pick<DueSweeper<SessionKeys>, 'sweep'>[],
  ) {
    this.#stores = stores ?? [
      new BucketExpirationStore(client, scripts, batchSize, limiter),
      new SortedSetExpirationStore(client, scripts, { batchSize }, limiter),
    ];
  }

  /**
   * One pass over every session that is due by Redis' clock. A batch that fails is logged, and left to the next pass.
   * Rejects with the error of ioredis when a bucket list cannot be read.
   */
  async runOnce(options: SweepOptions = {}): Promise<SweepResult> {
    const tally = new SweepCounter((options.ahead ?? 0) > 0);
    await this.pass(tally, options).finally(() => tally.report(options.signal));
    return tally.result;
  }

  /** @internal The same, without a word in the log. */
  async pass(tally: SweepCounter, options: SweepOptions): Promise<void> {
    const nodes = [...partitionsByNode(this.client, this.partitions.all).values()];
    const passes = await Promise.allSettled(nodes.map((its) => this.sweep(its, tally, options)));
    const failed = passes.find(({ status }) => status === 'rejected');
    if (failed) throw (failed as PromiseRejectedResult).reason;
  }

  /** @internal A pass over partitions of one node. */
  sweep(partitions: readonly SessionKeys[], tally: SweepCounter, options: SweepOptions): Promise<void> {
    const sweep = async () => {
      for (const store of this.#stores) await store.sweep(partitions, tally, options);
    };
    return tracedPass('sweep', this.partitions, tally, sweep);
  }
}

interface Bucket {
  readonly partition: SessionKeys;
  readonly minute: string;
  /** The clock of its node when the pass began there: epoch milliseconds. */
  readonly now: number;
}

const MEMBERS_PER_PAGE = 100;
// Redis takes the place in the hash table of a set from the lowest bits of a cursor, and any number is one.
const HIGHEST_CURSOR = 2 ** 32;

class BucketExpirationStore implements Pick<DueSweeper<SessionKeys>, 'sweep'> {
  constructor(
    private readonly client: Redis,
    private readonly scripts: SessionScripts,
    private readonly batchSize: number,
    private readonly limiter: BackgroundLimiter,
  ) {}

  async sweep(
    partitions: readonly SessionKeys[],
    tally: SweepCounter,
    { ahead = 0, signal }: SweepOptions,
  ): Promise<void> {
    for (const bucket of await this.#bucketsOf(partitions, ahead, tally)) {
      if (signal?.aborted) break;
      tally.result.buckets++;
      await this.#sweep(bucket, tally, signal);
    }
  }

  /** Those that are due on one node, the oldest first. */
  async #bucketsOf(partitions: readonly SessionKeys[], ahead: number, tally: SweepCounter): Promise<Bucket[]> {
    const now = await redisTime(nodeWith(this.client, partitions[0]!.prefix));
    const buckets = partitions.map(async (partition) => {
      const due = this.client.zrangebyscore(partition.bucketList, '-inf', now + ahead);
      const minutes = await due.catch((error: unknown) => {
        if (!isReply(error, 'WRONGTYPE')) throw error;
        tally.failures.push(error);
        return [];
      });
      return minutes.map((minute) => ({ partition, minute, now }));
    });
    return (await Promise.all(buckets)).flat().toSorted((a, b) => Number(a.minute) - Number(b.minute));
  }

  async #sweep({ partition, minute, now }: Bucket, tally: SweepCounter, signal?: AbortSignal): Promise<void> {
    let isLastTaken = false;
    // Whether others have claimed most of the last batch: true once for each, however many empty pages follow.
    const hasMet = () => {
      const isTaken = isLastTaken;
      isLastTaken = false;
      return isTaken;
    };
    for await (const batch of this.#batches(partition, minute, hasMet)) {
      if (signal?.aborted) return;
      try {
        const claim = () => this.scripts.claimExpired(partition, batch, minute);
        const claims = await this.limiter.run(claim, partition.prefix);
        for (const [i, each] of claims.entries()) tally.count(partition, batch[i], each, Number(minute), now);
        isLastTaken = claims.filter(({ outcome }) => outcome === 'already').length > claims.length / 2;
      } catch (error) {
        tally.failures.push(error);
      }
    }
  }

  /** The members, and then an empty batch, with which the script cleans up the bucket. `hasMet`: see `#sweep()`. */
  async *#batches(partition: SessionKeys, minute: string, hasMet: () => boolean): AsyncIterable<string[]> {
    // Redis returns a few more members than COUNT, a small set whole, and a member maybe twice.
    const left = new Set<string>();
    for await (const members of this.#members(partition, minute, hasMet)) {
      for (const member of members) left.add(member);
      while (left.size >= this.batchSize) yield taken(left, this.batchSize);
    }
    if (left.size > 0) yield taken(left, this.batchSize);
    yield [];
  }

  /** A page is read after claims of the last one. SSCAN returns a member at least once unless it leaves the set. */
  async *#members(partition: SessionKeys, minute: string, hasMet: () => boolean): AsyncIterable<string[]> {
    const key = partition.bucket(minute);
    const scan: ReadPage = (cursor) => this.client.sscan(key, cursor, 'COUNT', MEMBERS_PER_PAGE);
    try {
      yield* pagesFromAnywhere((cursor) => this.limiter.run(() => scan(cursor), partition.prefix), hasMet);
    } catch (error) {
      if (!isReply(error, 'WRONGTYPE')) throw error;
      for await (const ids of sessionsRecordedIn(this.client, partition, minute))
        yield ids.map((id) => partition.memberOf(id));
    }
  }
}

function taken(members: Set<string>, count: number): string[] {
  const batch = [...members].slice(0, count);
  for (const member of batch) members.delete(member);
  return batch;
}

/** All pages of a scan, and before most of them some from a random place: instances part where they meet. */
async function* pagesFromAnywhere(read: ReadPage, hasMet: () => boolean): AsyncIterable<string[]> {
  const [second, items] = await read('0');
  yield items;
  if (second === '0') return;
  yield* pagesFromRandom(read, hasMet);
  for await (const page of pages(read, second)) {
    yield page;
    if (hasMet()) yield* pagesFromRandom(read, hasMet);
  }
}

/** Up to where another instance is, or was. */
async function* pagesFromRandom(read: ReadPage, hasMet: () => boolean): AsyncIterable<string[]> {
  for await (const page of pages(read, `${randomInt(HIGHEST_CURSOR)}`)) {
    yield page;
    if (page.length === 0 || hasMet()) return;
  }
}

/** A sorted set of ids in each partition, out of which a script takes what is due. */
@Injectable()
export class SortedSetExpirationStore implements Pick<DueSweeper<SessionKeys>, 'sweep'>, DueList<SessionKeys> {
  readonly what = 'sessions';
  /** Where a stray key has taken its place, and the sessions that it had have been looked for. */
  readonly #replaced = new Set<SessionKeys>();

  constructor(
    @InjectConnection('background') private readonly client: Redis,
    @Inject(BACKGROUND_SESSION_SCRIPTS) private readonly scripts: Pick<SessionScripts, 'claimDue' | 'claimExpired'>,
    @Inject(REDIS_SESSION_OPTIONS) private readonly options: Pick<ResolvedRedisSessionOptions, 'batchSize'>,
    @Inject(BackgroundLimiter) private readonly limiter: BackgroundLimiter,
  ) {}

  async sweep(partitions: readonly SessionKeys[], tally: SweepCounter, options: SweepOptions): Promise<void> {
    for (const partition of partitions) {
      if (options.signal?.aborted) return;
      await this.claimIn(partition, tally, options).catch((error: unknown) => tally.failures.push(error));
    }
  }

  /** Rejects when a stray key has taken the place of the sorted set: its sessions are in buckets by then. */
  async claimIn(partition: SessionKeys, tally: SweepCounter, options: SweepOptions = {}): Promise<number | undefined> {
    try {
      const next = await this.#claimDue(partition, tally, options);
      this.#replaced.delete(partition);
      return next;
    } catch (error) {
      const isReplaced = isReply(error, 'WRONGTYPE') && error.message.includes(`${partition.ends} `);
      if (isReplaced && !this.#replaced.has(partition)) await this.#claimLost(partition, tally, options);
      throw error;
    }
  }

  async #claimDue(partition: SessionKeys, tally: SweepCounter, { ahead = 0, signal }: SweepOptions) {
    const { batchSize } = this.options;
    let last: DueEntry | undefined;
    while (!signal?.aborted) {
      const after = ahead > 0 ? last : undefined;
      const call = () => this.scripts.claimDue(partition, batchSize, ahead, after);
      const { entries: sessions, next, now } = await this.limiter.run(call, partition.prefix);
      for (const session of sessions) {
        tally.count(partition, partition.memberOf(session.id), session, Number(session.time), now);
      }
      if (sessions.length < batchSize) return next;
      last = sessions.at(-1);
    }
    return undefined;
  }

  /** What stood in the sorted set before a stray key took its place. Live sessions go to buckets. */
  async #claimLost(partition: SessionKeys, tally: SweepCounter, { signal }: SweepOptions): Promise<void> {
    const { prefix } = partition;
    for await (const ids of sessionsRecordedIn(this.client, partition, null)) {
      while (ids.length > 0) {
        if (signal?.aborted) return;
        const members = ids.splice(0, this.options.batchSize).map((id) => partition.memberOf(id));
        const claims = await this.limiter.run(() => this.scripts.claimExpired(partition, members, 'ends'), prefix);
        for (const [i, claim] of claims.entries()) tally.count(partition, members[i], claim, Infinity, 0);
      }
    }
    this.#replaced.add(partition);
  }
}

/** Those whose session hashes name a bucket; null: none. A scan of all keys, for when a stray key is in its place. */
async function* sessionsRecordedIn(client: Redis, partition: SessionKeys, bucket: string | null) {
  for await (const found of storedSessionIds(client, partition)) {
    // Another namespace may begin with this one and `sessions`.
    const ids = found.filter(isWellFormedIdOrToken);
    const recorded = await Promise.all(ids.map((id) => client.hget(partition.session(id), 'bucket')));
    yield ids.filter((_, i) => recorded[i] === bucket);
  }
}

type NoticedBy = SessionSweepContext['noticedBy'];
type Namespace = Pick<Partitions, 'namespace'>;

/** Tells the channel `nest-session:sweep` of a pass, which counts in `tally` what it finds. */
function tracedPass<T>(
  noticedBy: NoticedBy,
  { namespace }: Namespace,
  tally: Pick<SweepCounter, 'takeFound'>,
  pass: () => Promise<T>,
): Promise<T> {
  if (!sweepChannel.hasSubscribers) return pass();
  tally.takeFound();
  return traced<T, SessionSweepContext>(sweepChannel, { noticedBy, namespace }, pass, () => tally.takeFound());
}

/** Polls for what is due by a list of the times, and tells the channel of each look. */
export function tracedPoller<Keys extends PartitionKeys>(
  list: DueList<Keys> & { readonly what: string },
  partitions: Pick<Partitions<Keys>, 'all' | 'namespace'>,
  signals: PartitionSignals,
): DuePoller<Keys> {
  const claimIn: DueList<Keys>['claimIn'] = (keys, tally, options) =>
    tracedPass('poll', partitions, tally, () => list.claimIn(keys, tally, options));
  return new DuePoller(list.what, { claimIn }, partitions.all, signals);
}

/** Tells the channel of a call of claim-expired. */
export function tracedClaims(noticedBy: NoticedBy, { namespace }: Namespace, call: () => Promise<Claim[]>) {
  if (!sweepChannel.hasSubscribers) return call();
  return traced<Claim[], SessionSweepContext>(sweepChannel, { noticedBy, namespace }, call, (claims) => {
    const claimed = claims.filter(({ outcome }) => outcome === 'claimed');
    return { claimed: claimed.length, delays: claimed.flatMap(({ delay }) => delay ?? []) };
  });
}
