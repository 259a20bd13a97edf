import { Logger } from '@nestjs/common';
import type { Redis } from 'ioredis';
import type { SessionKeys } from '../keys/session.keys.js';
import type { ClaimWord, SessionScripts } from '../scripts/session.scripts.js';

/** What a pass has done: how many minutes it looked at, and how many of their sessions it found in which state. */
export type SweepResult = Readonly<Record<ClaimWord, number>> & { readonly minutes: number };

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

  /** One pass over every bucket that is due by Redis' clock. */
  async runOnce(options: SweepOptions = {}): Promise<SweepResult> {
    const result = { minutes: 0, claimed: 0, alive: 0, already: 0, corrupt: 0 };
    const [seconds, microseconds] = await this.client.time();
    const now = Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
    const dueBefore = now + (options.ahead ?? 0);
    for (const minute of await this.client.zrangebyscore(this.keys.bucketList, '-inf', dueBefore)) {
      result.minutes++;
      try {
        for await (const words of this.#sweep(minute, options.signal)) for (const word of words) result[word]++;
      } catch (error) {
        // The other buckets must not wait for this one.
        this.#logger.error(`The bucket of minute ${minute} cannot be swept: ${String(error)}`);
      }
    }
    if (result.corrupt > 0) this.#logger.error(`${result.corrupt} sessions were put among the dead letters`);
    return result;
  }

  /** Claims the members of a bucket batch by batch. SSCAN returns whatever is in it all the time, at least once. */
  async *#sweep(minute: string, signal?: AbortSignal): AsyncIterable<ClaimWord[]> {
    let cursor = '0';
    if (signal?.aborted) return;
    do {
      const [next, members] = await this.client.sscan(this.keys.bucket(minute), cursor, 'COUNT', this.batchSize);
      cursor = next;
      // A small set is returned whole, whatever COUNT says. No members: the call still forgets an empty bucket.
      for (let i = 0; i === 0 || i < members.length; i += this.batchSize) {
        yield await this.scripts.claimExpired(members.slice(i, i + this.batchSize), minute);
      }
    } while (cursor !== '0' && !signal?.aborted);
  }
}
