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

  /** Claims the members of a bucket batch by batch. SSCAN returns whatever is in it all the time, at least once. */
  async #sweep(minute: string, tally: SweepTally, signal?: AbortSignal): Promise<void> {
    let cursor = '0';
    do {
      const [next, members] = await this.#peek(minute, cursor);
      cursor = next;
      // A small set is returned whole, whatever COUNT says. No members: the call still forgets an empty bucket.
      for (let i = 0; i === 0 || i < members.length; i += this.batchSize) {
        const batch = members.slice(i, i + this.batchSize);
        await this.scripts.claimExpired(batch, minute).then(
          (words) => tally.count(minute, words),
          (error: unknown) => tally.failures.push(error),
        );
      }
    } while (cursor !== '0' && !signal?.aborted);
  }

  async #peek(minute: string, cursor: string): Promise<[cursor: string, members: string[]]> {
    try {
      return await this.client.sscan(this.keys.bucket(minute), cursor, 'COUNT', this.batchSize);
    } catch (error) {
      // No set stands there, which the script puts aside.
      if (isReply(error, 'WRONGTYPE')) return ['0', []];
      throw error;
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
