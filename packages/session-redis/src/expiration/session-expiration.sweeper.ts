import { randomInt } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import type { Redis } from 'ioredis';
import type { ResolvedRedisSessionOptions } from '../configuration/redis-session.options.js';
import { BACKGROUND_SESSION_SCRIPTS, REDIS_SESSION_OPTIONS } from '../configuration/redis-session.tokens.js';
import { InjectConnection } from '../connection/redis-connections.js';
import { nodeWith, partitionsByNode } from '../connection/node-with.js';
import { isReply } from '../connection/reply.errors.js';
import type { SessionKeys } from '../keys/session-keys.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import type { SessionScripts } from '../scripts/session/session.scripts.js';
import { BackgroundLimiter } from '../timing/background.limiter.js';
import { type Bucket, SweepCounter, type SweepResult } from './sweep.counter.js';
import { logger } from '../logging/redis-session.logger.js';
import { pages, type ReadPage } from './scan-pages.js';
import { shownError } from '@nest-session/core/store';

/** Options of `SessionExpirationSweeper.runOnce()`. */
export interface SweepOptions {
  /**
   * Also look at buckets up to this many milliseconds in the future. Harmless: a live session stays alive. @default 0
   */
  readonly ahead?: number;
  /** Ends the pass before its next batch. The next pass finds the rest. */
  readonly signal?: AbortSignal;
}

const SCANNED_PER_CALL = 1000;
const MEMBERS_PER_PAGE = 100;
// Redis takes the place in the hash table of a set from the lowest bits of a cursor, and any number is one.
const HIGHEST_CURSOR = 2 ** 32;

/**
 * Finds the sessions that have expired, and claims them. It reads the bucket list instead of counting minutes, so it
 * needs no care after an outage or a clock step. Any number of instances may sweep at once: a script claims each
 * session once.
 */
@Injectable()
export class SessionExpirationSweeper {
  readonly #batchSize: number;

  /** @internal `RedisSessionModule` does this: inject the sweeper. */
  constructor(
    @InjectConnection('background') private readonly client: Redis,
    @Inject(BACKGROUND_SESSION_SCRIPTS) private readonly scripts: SessionScripts,
    @Inject(SessionPartitions) private readonly partitions: Pick<SessionPartitions, 'all'>,
    @Inject(REDIS_SESSION_OPTIONS) { batchSize }: Pick<ResolvedRedisSessionOptions, 'batchSize'>,
    @Inject(BackgroundLimiter) private readonly limiter: BackgroundLimiter,
  ) {
    this.#batchSize = batchSize;
  }

  /**
   * One pass over every bucket that is due by Redis' clock. A batch that fails is logged, and left to the next pass.
   * Rejects with the error of ioredis when a bucket list cannot be read. The nodes of a Cluster are swept at the same time.
   */
  runOnce(options: SweepOptions = {}): Promise<SweepResult> {
    return this.sweep(this.partitions.all, options);
  }

  /** @internal As `runOnce()`, in some partitions. */
  async sweep(partitions: readonly SessionKeys[], { ahead = 0, signal }: SweepOptions = {}): Promise<SweepResult> {
    const tally = new SweepCounter(ahead > 0);
    const passes = [...partitionsByNode(this.client, partitions)].map(async ([, its]) => {
      for (const bucket of await this.#bucketsOf(its, ahead, tally)) {
        if (signal?.aborted) break;
        tally.result.buckets++;
        await this.#sweep(bucket, tally, signal);
      }
    });
    const failed = (await Promise.allSettled(passes)).find(({ status }) => status === 'rejected');
    this.#report(tally, signal);
    if (failed) throw (failed as PromiseRejectedResult).reason;
    return tally.result;
  }

  /** The clock of the node that has a partition, in epoch milliseconds. */
  async #clockOf({ prefix }: SessionKeys): Promise<number> {
    const [seconds, microseconds] = await nodeWith(this.client, prefix).time();
    return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
  }

  /** The due buckets of partitions on one node, the oldest first. */
  async #bucketsOf(partitions: readonly SessionKeys[], ahead: number, tally: SweepCounter): Promise<Bucket[]> {
    const now = await this.#clockOf(partitions[0]!);
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

  async #sweep(bucket: Bucket, tally: SweepCounter, signal?: AbortSignal): Promise<void> {
    for await (const batch of this.#batches(bucket)) {
      if (signal?.aborted) return;
      const claim = () => this.scripts.claimExpired(bucket.partition, batch, bucket.minute);
      await this.limiter.run(claim, bucket.partition.prefix).then(
        (outcomes) => tally.count(bucket, batch, outcomes),
        (error: unknown) => tally.failures.push(error),
      );
    }
  }

  /** The members of a bucket, and then an empty batch, with which the script cleans up the bucket itself. */
  async *#batches(bucket: Bucket): AsyncIterable<string[]> {
    // Redis returns a few more members than COUNT, and a small set whole. What is left of a page waits for the next one,
    // which may have the same members again.
    const left = new Set<string>();
    for await (const members of this.#members(bucket)) {
      for (const member of members) left.add(member);
      while (left.size >= this.#batchSize) yield taken(left, this.#batchSize);
    }
    if (left.size > 0) yield taken(left, this.#batchSize);
    yield [];
  }

  /** A page is read after claims of the last one. SSCAN returns a member at least once unless it leaves the set. */
  async *#members(bucket: Bucket): AsyncIterable<string[]> {
    const key = bucket.partition.bucket(bucket.minute);
    try {
      yield* pagesFromAnywhere((cursor) =>
        this.limiter.run(() => this.client.sscan(key, cursor, 'COUNT', MEMBERS_PER_PAGE), bucket.partition.prefix),
      );
    } catch (error) {
      if (!isReply(error, 'WRONGTYPE')) throw error;
      yield* this.#scanFor(bucket);
    }
  }

  /** The members of a bucket whose place a foreign key has taken, from a scan of all session hashes. */
  async *#scanFor({ partition, minute }: Bucket): AsyncIterable<string[]> {
    const prefix = partition.session('');
    const all = ['MATCH', `${prefix}*`, 'COUNT', SCANNED_PER_CALL, 'TYPE', 'hash'] as const;
    const scan = (cursor: string) => nodeWith(this.client, prefix).scan(cursor, ...all);
    for await (const keys of pages(scan)) {
      const recorded = await Promise.all(keys.map((key) => this.client.hget(key, 'bucket')));
      yield keys.filter((_, i) => recorded[i] === minute).map((key) => partition.memberOf(key.slice(prefix.length)));
    }
  }

  #report({ result: { corrupt }, failures, deadLetters }: SweepCounter, signal?: AbortSignal): void {
    if (corrupt > 0) {
      logger.error(
        `Moved ${corrupt} foreign keys or members to the dead letters: see the stream ${[...deadLetters].join(', ')}`,
      );
    }
    // During a shutdown, failures are expected.
    if (failures.length > 0 && !signal?.aborted) {
      logger.error(
        `${failures.length} batches of the sweep failed; the next sweep repeats them: ${shownError(failures[0])}`,
      );
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
 * All pages of a scan, and after the first one those from a random cursor on: instances that scan the same set at the
 * same time meet in few pages.
 */
async function* pagesFromAnywhere(read: ReadPage): AsyncIterable<string[]> {
  const [second, items] = await read('0');
  yield items;
  if (second === '0') return;
  yield* pages(read, `${randomInt(HIGHEST_CURSOR)}`);
  yield* pages(read, second);
}
