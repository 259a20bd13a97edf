import { Logger } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { isReply } from '../connection/reply.errors.js';
import type { SessionKeys } from '../keys/session.keys.js';
import type { SessionScripts } from '../scripts/session.scripts.js';
import { SweepTally, type SweepResult } from './sweep.tally.js';

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
export class SessionExpirationSweeper {
  readonly #logger = new Logger('SessionCleanup');

  constructor(
    private readonly client: Redis,
    private readonly scripts: SessionScripts,
    private readonly keys: SessionKeys,
    private readonly batchSize: number,
  ) {}

  /** One pass over every bucket that is due by Redis' clock. What cannot be claimed is in the way of nothing else. */
  async runOnce(options: SweepOptions = {}): Promise<SweepResult> {
    const [seconds, microseconds] = await this.client.time();
    const now = Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
    const tally = new SweepTally(now);
    for (const minute of await this.client.zrangebyscore(this.keys.bucketList, '-inf', now + (options.ahead ?? 0))) {
      if (options.signal?.aborted) break;
      tally.result.minutes++;
      await this.#sweep(minute, tally, options.signal);
    }
    this.#report(tally, options.signal);
    return tally.result;
  }

  async #sweep(minute: string, tally: SweepTally, signal?: AbortSignal): Promise<void> {
    for await (const batch of this.#batches(minute)) {
      if (signal?.aborted) return;
      await this.scripts.claimExpired(batch, minute).then(
        (words) => tally.count(minute, words),
        (error: unknown) => tally.failures.push(error),
      );
    }
  }

  /** The members of a bucket, and at the end none: with that call the bucket itself is dealt with. */
  async *#batches(minute: string): AsyncIterable<string[]> {
    for await (const members of this.#members(minute)) {
      // A small set is returned whole, whatever COUNT says.
      for (let i = 0; i < members.length; i += this.batchSize) yield members.slice(i, i + this.batchSize);
    }
    yield [];
  }

  /** SSCAN returns whatever is in it all the time, at least once. Each page is read after the one before was claimed. */
  async *#members(minute: string): AsyncIterable<string[]> {
    const bucket = this.keys.bucket(minute);
    try {
      yield* pages((cursor) => this.client.sscan(bucket, cursor, 'COUNT', this.batchSize));
    } catch (error) {
      if (!isReply(error, 'WRONGTYPE')) throw error;
      yield* this.#recordedIn(minute);
    }
  }

  /** Who would be in a bucket that somebody has put a foreign key in the place of: all sessions are looked at. */
  async *#recordedIn(minute: string): AsyncIterable<string[]> {
    const prefix = this.keys.session('');
    const all = ['MATCH', `${prefix}*`, 'COUNT', SCANNED_PER_CALL, 'TYPE', 'hash'] as const;
    for await (const keys of pages((cursor) => this.client.scan(cursor, ...all))) {
      const recorded = await Promise.all(keys.map((key) => this.client.hget(key, 'bucket')));
      yield keys.filter((_, i) => recorded[i] === minute).map((key) => `expires:${key.slice(prefix.length)}`);
    }
  }

  #report({ result: { corrupt }, failures }: SweepTally, signal?: AbortSignal): void {
    if (corrupt > 0) {
      this.#logger.error(
        `Set aside ${corrupt}: what stands where sessions do is none of ours (see the stream ${this.keys.deadLetters})`,
      );
    }
    // What fails because the application ends is for the next one that starts.
    if (failures.length > 0 && !signal?.aborted) {
      this.#logger.error(`${failures.length} batches failed and are left to the next pass: ${String(failures[0])}`);
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
