import { randomInt } from 'node:crypto';
import { isWellFormedIdOrToken } from '@nest-session/core/internal';
import {
  type BackgroundLimiter,
  type DueEntry,
  type DueList,
  type DueSweeper,
  isReply,
  nodeWith,
  partitionsByNode,
  redisTime,
  SweepCounter,
  type SweepOptions,
  type SweepResult,
} from '@nest-session/redis-events/internal';
import type { Redis } from 'ioredis';
import type { ResolvedRedisSessionOptions } from '../configuration/redis-session.options.js';
import { pages, type ReadPage, storedSessionIds } from '../keys/scan-pages.js';
import type { SessionKeys } from '../keys/session-keys.js';
import type { SessionPartitions } from '../keys/session-partitions.js';
import type { SessionScripts } from '../scripts/session/session.scripts.js';
import { tracedPass } from './traced-sweep.js';

/** The name of the cleanup job in `SchedulerRegistry`. */
export const SESSION_CLEANUP_JOB = 'session-cleanup';

/**
 * Finds the sessions that have expired, and claims them, wherever their ends are noted. It reads the bucket list
 * instead of counting minutes, so it needs no care after an outage or a clock step. Any number of instances may sweep
 * at once: a script claims each session once.
 */
export class SessionExpirationSweeper implements DueSweeper<SessionKeys> {
  /** @internal */
  readonly what = 'sessions';
  readonly #stores: readonly Pick<DueSweeper<SessionKeys>, 'sweep'>[];

  /**
   * @internal `RedisSessionModule` does this: inject the sweeper.
   * @param stores where ends are noted. By default in our own form
   */
  constructor(
    private readonly client: Redis,
    scripts: SessionScripts,
    private readonly partitions: Pick<SessionPartitions, 'all' | 'namespace'>,
    { batchSize }: Pick<ResolvedRedisSessionOptions, 'batchSize'>,
    limiter: BackgroundLimiter,
    stores?: readonly Pick<DueSweeper<SessionKeys>, 'sweep'>[],
  ) {
    this.#stores = stores ?? [
      new BucketExpirationStore(client, scripts, batchSize, limiter),
      new SortedSetExpirationStore(client, scripts, batchSize, limiter),
    ];
  }

  /**
   * One pass over every session that is due by Redis' clock. A batch that fails is logged, and left to the next pass.
   * Rejects with the error of ioredis when a bucket list cannot be read. The nodes of a Cluster are swept at the same
   * time.
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

/** The bucket of one minute in one partition. */
interface Bucket {
  readonly partition: SessionKeys;
  readonly minute: string;
  /** The clock of its node when the pass began there: epoch milliseconds. */
  readonly now: number;
}

const MEMBERS_PER_PAGE = 100;
// Redis takes the place in the hash table of a set from the lowest bits of a cursor, and any number is one.
const HIGHEST_CURSOR = 2 ** 32;

/** A set for each minute, and a list of the minutes that have one. */
class BucketExpirationStore implements Pick<DueSweeper<SessionKeys>, 'sweep'> {
  constructor(
    private readonly client: Redis,
    private readonly scripts: SessionScripts,
    private readonly batchSize: number,
    private readonly limiter: BackgroundLimiter,
  ) {}

  /** Rejects with the error of ioredis when a bucket list cannot be read. */
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

  /** The due buckets of partitions on one node, the oldest first. */
  async #bucketsOf(partitions: readonly SessionKeys[], ahead: number, tally: SweepCounter): Promise<Bucket[]> {
    const now = await redisTime(nodeWith(this.client, partitions[0]!.prefix));
    const buckets = partitions.map(async (partition) => {
      const minutes = await this.client
        .zrangebyscore(partition.bucketList, '-inf', now + ahead)
        .catch((error: unknown) => {
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
    // Once for each batch, however many pages without members follow.
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

  /**
   * The members of a bucket, and then an empty batch, with which the script cleans up the bucket itself. `hasMet`:
   * whether others have claimed most of the last batch; true once for each batch.
   */
  async *#batches(partition: SessionKeys, minute: string, hasMet: () => boolean): AsyncIterable<string[]> {
    // Redis returns a few more members than COUNT, and a small set whole. What is left of a page waits for the next
    // one, which may have the same members again.
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

/** Takes up to `count` members out of the set. */
function taken(members: Set<string>, count: number): string[] {
  const batch = [...members].slice(0, count);
  for (const member of batch) members.delete(member);
  return batch;
}

/**
 * All pages of a scan, and before most of them some from a random cursor on: instances that scan the same set at the
 * same time begin at different places, and part where they meet.
 */
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

/** The pages from a random cursor on, up to where another instance is, or was. */
async function* pagesFromRandom(read: ReadPage, hasMet: () => boolean): AsyncIterable<string[]> {
  for await (const page of pages(read, `${randomInt(HIGHEST_CURSOR)}`)) {
    yield page;
    if (page.length === 0 || hasMet()) return;
  }
}

/** A sorted set of ids in each partition. One script takes out of it what is due, for any instance. */
export class SortedSetExpirationStore implements Pick<DueSweeper<SessionKeys>, 'sweep'>, DueList<SessionKeys> {
  /** Where a stray key has taken the place of the sorted set, and the sessions that it had have been looked for. */
  readonly #replaced = new Set<SessionKeys>();

  constructor(
    private readonly client: Redis,
    private readonly scripts: Pick<SessionScripts, 'claimDue' | 'claimExpired'>,
    private readonly batchSize: number,
    private readonly limiter: BackgroundLimiter,
  ) {}

  async sweep(partitions: readonly SessionKeys[], tally: SweepCounter, options: SweepOptions): Promise<void> {
    for (const partition of partitions) {
      if (options.signal?.aborted) return;
      await this.claimIn(partition, tally, options).catch((error: unknown) => tally.failures.push(error));
    }
  }

  /**
   * Milliseconds until the earliest session that is left is due; undefined when there is none, or the pass was aborted.
   * Rejects when a stray key has taken the place of the sorted set: the sessions that it had are in buckets by then.
   */
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

  async #claimDue(
    partition: SessionKeys,
    tally: SweepCounter,
    { ahead = 0, signal }: SweepOptions,
  ): Promise<number | undefined> {
    let last: DueEntry | undefined;
    while (!signal?.aborted) {
      const after = ahead > 0 ? last : undefined;
      const call = () => this.scripts.claimDue(partition, this.batchSize, ahead, after);
      const { entries: sessions, next, now } = await this.limiter.run(call, partition.prefix);
      for (const session of sessions) {
        tally.count(partition, partition.memberOf(session.id), session, Number(session.time), now);
      }
      if (sessions.length < this.batchSize) return next;
      last = sessions.at(-1);
    }
    return undefined;
  }

  /** The sessions that stood in the sorted set before a stray key took its place. Those that live go to buckets. */
  async #claimLost(partition: SessionKeys, tally: SweepCounter, { signal }: SweepOptions): Promise<void> {
    const { prefix } = partition;
    for await (const ids of sessionsRecordedIn(this.client, partition, null)) {
      while (ids.length > 0) {
        if (signal?.aborted) return;
        const members = ids.splice(0, this.batchSize).map((id) => partition.memberOf(id));
        const claims = await this.limiter.run(() => this.scripts.claimExpired(partition, members, 'ends'), prefix);
        for (const [i, claim] of claims.entries()) tally.count(partition, members[i], claim, Infinity, 0);
      }
    }
    this.#replaced.add(partition);
  }
}

/**
 * The ids of the sessions whose session hashes name a bucket; null: none, as those in the sorted set. A scan of all
 * keys of the node: only for when a stray key has taken the place of the bucket, or of the sorted set.
 */
async function* sessionsRecordedIn(
  client: Redis,
  partition: SessionKeys,
  bucket: string | null,
): AsyncIterable<string[]> {
  for await (const found of storedSessionIds(client, partition)) {
    // Another namespace may begin with this one and `sessions`.
    const ids = found.filter(isWellFormedIdOrToken);
    const recorded = await Promise.all(ids.map((id) => client.hget(partition.session(id), 'bucket')));
    yield ids.filter((_, i) => recorded[i] === bucket);
  }
}
