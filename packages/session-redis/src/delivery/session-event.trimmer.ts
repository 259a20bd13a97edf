import type { Redis } from 'ioredis';
import type { SessionKeys } from '../keys/session.keys.js';

/** Removes from the stream what is older than the retention: the data that such an entry refers to has gone as well. */
export class SessionEventTrimmer {
  constructor(
    private readonly client: Redis,
    private readonly keys: SessionKeys,
    /** Milliseconds. */
    private readonly retention: number,
  ) {}

  /** One pass; returns how many entries it removed. */
  async runOnce(): Promise<number> {
    const [seconds] = await this.client.time();
    // Exactly (no `~`): what is left must not depend on how the stream happens to be stored.
    return this.client.xtrim(this.keys.events, 'MINID', Number(seconds) * 1000 - this.retention);
  }
}
