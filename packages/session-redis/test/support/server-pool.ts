import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';

/** A private Redis, and a connection of the test to it. */
interface Pooled {
  readonly server: RedisServer;
  readonly client: Redis;
}

/** Private servers for checks that run at the same time: each has one to itself, and leaves it empty to the next. */
export class ServerPool {
  readonly #all: Pooled[] = [];
  readonly #free: Pooled[] = [];

  /** Resolves to the URL of an empty server that nobody else has. `release()` empties it and gives it back. */
  async take(): Promise<{ readonly url: string; release(): Promise<void> }> {
    const pooled = this.#free.pop() ?? (await this.#start());
    return {
      url: pooled.server.url,
      release: async () => {
        await pooled.client.flushall();
        this.#free.push(pooled);
      },
    };
  }

  async stop(): Promise<void> {
    for (const { client } of this.#all) client.disconnect();
    await Promise.all(this.#all.map(({ server }) => server.stop()));
  }

  async #start(): Promise<Pooled> {
    const server = await RedisServer.start();
    const pooled = { server, client: new Redis(server.url) };
    this.#all.push(pooled);
    return pooled;
  }
}
