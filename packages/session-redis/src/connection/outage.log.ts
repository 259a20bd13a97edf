import type { Redis } from 'ioredis';
import { logger } from '../logging/redis-session.logger.js';
import { shownError } from '@nest-session/core/store';

/** Logs one line when an outage begins and one when it ends, however many connections notice, and whenever they do. */
export class OutageLog {
  /** The connections that were lost or failed, and are not ready again. */
  readonly #broken = new Set<Redis>();
  #isReported = false;

  watch(client: Redis): void {
    client.on('close', () => this.#broken.add(client));
    // Without a listener ioredis itself logs every failed attempt.
    client.on('error', (error: Error) => {
      this.#broken.add(client);
      if (this.#isReported) return;
      logger.error(`Redis cannot be reached, retrying: ${shownError(error)}`);
      this.#isReported = true;
    });
    client.on('ready', () => {
      if (this.#mend(client)) logger.log('Redis can be reached again');
    });
    client.on('end', () => void this.#mend(client));
  }

  /** Whether a reported outage has ended with this connection. */
  #mend(client: Redis): boolean {
    const ends = this.#broken.delete(client) && this.#broken.size === 0 && this.#isReported;
    if (ends) this.#isReported = false;
    return ends;
  }
}
