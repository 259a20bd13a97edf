import type { Redis } from 'ioredis';
import { logger } from '../logging/redis-session.logger.js';

/** One line when Redis cannot be reached and one when it can again, however many connections notice. */
export class OutageLog {
  readonly #broken = new Set<Redis>();

  watch(client: Redis): void {
    // Without a listener ioredis prints every failed attempt itself.
    client.on('error', (error: Error) => {
      if (this.#broken.size === 0) logger.error(`Redis cannot be reached: ${describe(error)}; trying again`);
      this.#broken.add(client);
    });
    client.on('ready', () => {
      if (this.#broken.delete(client) && this.#broken.size === 0) logger.log('Redis can be reached again');
    });
    client.on('end', () => this.#broken.delete(client));
  }
}

/** A host that resolves to several addresses fails with an error per address and no message of its own. */
function describe(error: Error): string {
  if (error instanceof AggregateError) return error.errors.map(String).join(', ');
  return error.message || error.name;
}
