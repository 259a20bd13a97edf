import { Inject, Injectable } from '@nestjs/common';
import type { Redis } from 'ioredis';
import type { ResolvedRedisSessionOptions } from '../configuration/redis-session.options.js';
import { BACKGROUND_SESSION_SCRIPTS, REDIS_SESSION_OPTIONS } from '../configuration/redis-session.tokens.js';
import { InjectConnection } from '../connection/redis-connections.js';
import { isReply } from '../connection/reply.errors.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import type { SessionScripts } from '../scripts/session/session.scripts.js';
import { type Bucket, SweepCounter, type SweepResult } from './sweep.counter.js';
import { logger } from '../logging/redis-session.logger.js';

/** Options of `SessionExpirationSweeper.runOnce()`. */
export interface SweepOptions {
  /** Also looks at the buckets of this many milliseconds to come; harmless, since a session in use stays one. */
  readonly ahead?: number;
  /** Ends the pass before its next batch; what is left is for the next pass. */
  readonly signal?: AbortSignal;
}

const SCANNED_PER_CALL = 1000;

/**
 * Finds the sessions that are over, and has their end recorded. It reads the list of buckets, not the calendar, so a
 * missed hour, a clock that was set back and a first start are all the same to it. Any number of instances may sweep
 * at a time: a script decides who records what.
 */
@Injectable()
export class SessionExpirationSweeper {
  readonly #batchSize: number;

  /** @internal `RedisSessionModule` does this: inject the sweeper. */
  constructor(
    @InjectConnection('background') private readonly client: Redis,
    @Inject(BACKGROUND_SESSION_SCRIPTS) private readonly scripts: SessionScripts,
    @Inject(SessionPartitions) private readonly partitions: SessionPartitions,
    @Inject(REDIS_SESSION_OPTIONS) { batchSize }: Pick<ResolvedRedisSessionOptions, 'batchSize'>,
  ) {
    this.#batchSize = batchSize;
  }

  /** One pass over every bucket that is due by Redis' clock. What cannot be claimed is in the way of nothing else. */
  async runOnce(options: SweepOptions = {}): Promise<SweepResult> {
    const [seconds, microseconds] = await this.client.time();
    const now = Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
    const until = now + (options.ahead ?? 0);
    const tally = new SweepCounter(now, until);
    for (const bucket of await this.#bucketsUntil(until, tally)) {
      if (options.signal?.aborted) break;
      tally.result.buckets++;
      await this.#sweep(bucket, tally, options.signal);
    }
    this.#report(tally, options.signal);
    return tally.result;
  }

  /** Those of all partitions, the oldest first. */
  async #bucketsUntil(time: number, tally: SweepCounter): Promise<Bucket[]> {
    const buckets = this.partitions.all.map(async (partition) => {
      const minutes = await this.client.zrangebyscore(partition.bucketList, '-inf', time).catch((error: unknown) => {
        if (!isReply(error, 'WRONGTYPE')) throw error;
        tally.failures.push(error);
        return [];
      });
      return minutes.map((minute) => ({ partition, minute }));
    });
    return (await Promise.all(buckets)).flat().toSorted((a, b) => Number(a.minute) - Number(b.minute));
  }

  async #sweep(bucket: Bucket, tally: SweepCounter, signal?: AbortSignal): Promise<void> {
    for await (const batch of this.#batches(bucket)) {
      if (signal?.aborted) return;
      await this.scripts.claimExpired(bucket.partition, batch, bucket.minute).then(
        (outcomes) => tally.count(bucket, batch, outcomes),
        (error: unknown) => tally.failures.push(error),
      );
    }
  }

  /** The members of a bucket, and at the end none: with that call the bucket itself is dealt with. */
  async *#batches(bucket: Bucket): AsyncIterable<string[]> {
    for await (const members of this.#members(bucket)) {
      // A small set is returned whole, whatever COUNT says.
      for (let i = 0; i < members.length; i += this.#batchSize) yield members.slice(i, i + this.#batchSize);
    }
    yield [];
  }

  /** SSCAN returns whatever is in it all the time, at least once. Each page is read after the one before was claimed. */
  async *#members(bucket: Bucket): AsyncIterable<string[]> {
    const key = bucket.partition.bucket(bucket.minute);
    try {
      yield* pages((cursor) => this.client.sscan(key, cursor, 'COUNT', this.#batchSize));
    } catch (error) {
      if (!isReply(error, 'WRONGTYPE')) throw error;
      yield* this.#recordedIn(bucket);
    }
  }

  /** Who would be in a bucket that somebody has put a foreign key in the place of: all sessions are looked at. */
  async *#recordedIn({ partition, minute }: Bucket): AsyncIterable<string[]> {
    const prefix = partition.session('');
    const all = ['MATCH', `${prefix}*`, 'COUNT', SCANNED_PER_CALL, 'TYPE', 'hash'] as const;
    for await (const keys of pages((cursor) => this.client.scan(cursor, ...all))) {
      const recorded = await Promise.all(keys.map((key) => this.client.hget(key, 'bucket')));
      yield keys.filter((_, i) => recorded[i] === minute).map((key) => partition.memberOf(key.slice(prefix.length)));
    }
  }

  #report({ result: { corrupt }, failures, deadLetters }: SweepCounter, signal?: AbortSignal): void {
    if (corrupt > 0) {
      logger.error(
        `Set aside ${corrupt}: what stands where sessions do is none of ours (see the stream ${[...deadLetters].join(', ')})`,
      );
    }
    // What fails because the application ends is for the next one that starts.
    if (failures.length > 0 && !signal?.aborted) {
      logger.error(`${failures.length} batches failed and are left to the next pass: ${String(failures[0])}`);
    }
  }
}

/** What a command returns that is called with one cursor after the other. */
async function* pages(read: (cursor: string) => Promise<[cursor: string, items: string[]]>): AsyncIterable<string[]> {
  let cursor = '0';
  do {
    const [next, items] = await read(cursor);
    yield items;
    cursor = next;
  } while (cursor !== '0');
}
