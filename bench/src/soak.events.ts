import { Redis } from 'ioredis';

/** Where the handlers of all instances note which events they have heard. An event that comes twice counts once. */
export class HeardEvents {
  readonly #client: Redis;

  constructor(url: string) {
    this.#client = new Redis(url, { enableAutoPipelining: true });
  }

  async note(type: string, id: string): Promise<void> {
    await this.#client.sadd(type, id);
  }

  async count(type: string): Promise<number> {
    return this.#client.scard(type);
  }

  disconnect(): void {
    this.#client.disconnect();
  }
}
