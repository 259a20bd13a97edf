import type { Redis } from 'ioredis';
import { logger } from '../logging/redis-session.logger.js';

/** Logs one line when an outage begins and one when it ends, however many connections notice. */
export class OutageLog {
  readonly #broken = new Set<Redis>();

  watch(client: Redis): void {
    // Without a listener ioredis itself logs every failed attempt.
    client.on('error', (error: Error) => {
      if (this.#broken.size === 0) logger.error(`Redis cannot be reached, retrying: ${describe(error)}`);
      this.#broken.add(client);
    });
    client.on('ready', () => {
      if (this.#broken.delete(client) && this.#broken.size === 0) logger.log('Redis can be reached again');
    });
    client.on('end', () => this.#broken.delete(client));
  }
}

/** For a host with several addresses, ioredis fails with one error per address and no message of its own. */
function describe(error: Error): string {
  if (error instanceof AggregateError) return error.errors.map(String).join(', ');
  return error.message || error.name;
}
