import { PollingLoop } from '@nest-session/core/store';
import type { Redis } from 'ioredis';
import { namespaceScripts } from '../scripts/namespace/namespace.scripts.js';
import type { Partitions } from '../partitions/partitions.js';
import type { BackgroundService } from '../timing/background-service.js';
import type { Connection } from './store-format.js';
import { nodeWith } from '../connection/node-with.js';
import { untilSound } from '../connection/server-faults.js';

// Milliseconds: how often an instance signs.
const SIGN_INTERVAL = 10_000;
/** For how long it then counts as alive, in milliseconds. */
export const ALIVE = 3 * SIGN_INTERVAL;
// Milliseconds. Instances that were killed are forgotten after a day.
const KEPT = 86_400_000;

/**
 * The instances of a namespace that are alive, also those that handle no events: each signs with its name and the time
 * of Redis, before it reads which partitions there are. No request does.
 */
export class LivingInstances implements BackgroundService {
  readonly #stopping = new AbortController();
  // Where Redis allows no sign, the next one is tried all the same.
  readonly #signing = new PollingLoop('The sign of life', SIGN_INTERVAL, () =>
    untilSound(() => this.runOnce(), this.#stopping.signal).catch(() => undefined),
  );
  #enterAgain: (() => Promise<void>) | undefined;
  /** The signs that have had no reply yet. */
  #signs: Promise<void> = Promise.resolve();

  constructor(
    private readonly connection: Connection,
    private readonly partitions: Pick<Partitions, 'instances'>,
    private readonly name: string,
    /** For the last command of this instance. */
    private readonly last = connection,
  ) {}

  /** `enter` is called when Redis has forgotten this instance: it has lost its data, or is another one. */
  onForgotten(enter: () => Promise<void>): void {
    this.#enterAgain = enter;
  }

  /** Signs from time to time. The first time, it has signed before: see StoreConnections. */
  start(): void {
    this.#signing.start();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#signing.stop();
    // A sign on the way, as after a reconnection, would bring it back.
    await this.#signs;
    await this.leave(this.last).catch(() => undefined);
  }

  async runOnce(): Promise<void> {
    const { signal } = this.#stopping;
    if (signal.aborted) return;
    const sign = this.sign();
    this.#signs = Promise.allSettled([this.#signs, sign]).then(() => undefined);
    if ((await sign) && !signal.aborted) await this.#enterAgain?.();
  }

  /** Whether Redis did not know this instance. */
  async sign(): Promise<boolean> {
    const now = await this.#now();
    const added = await this.#run((client, signs) => namespaceScripts(client).signInstance(1, signs, now, this.name));
    await this.#forget(now - KEPT);
    return Number(added) > 0;
  }

  /** It changes nothing any more. */
  async leave(connection = this.connection): Promise<void> {
    const { instances } = this.partitions;
    await connection.run((client) => client.zrem(instances, this.name), instances);
  }

  /** The names of the others that are alive. */
  async others(): Promise<string[]> {
    const now = await this.#now();
    // Another one may have signed in the second after this time.
    await this.#run((client, signs) => namespaceScripts(client).setBackSigns(1, signs, now + 1000));
    const names = await this.#run((client, signs) => client.zrangebyscore(signs, now - ALIVE, '+inf'));
    return names.filter((name) => name !== this.name);
  }

  /** Forgets all that are not alive, so that one that comes back notices it. */
  async forgetSilent(): Promise<void> {
    await this.#forget((await this.#now()) - ALIVE);
  }

  async #forget(until: number): Promise<void> {
    const dead = await this.#run((client, signs) => client.zrangebyscore(signs, '-inf', until));
    if (dead.length > 0) await this.#run((client, signs) => client.zrem(signs, ...dead));
  }

  async #now(): Promise<number> {
    const [seconds] = await this.#run((client, signs) => nodeWith(client, signs).time());
    return Number(seconds) * 1000;
  }

  #run<T>(command: (client: Redis, signs: string) => Promise<T>): Promise<T> {
    const { instances } = this.partitions;
    return this.connection.run((client) => command(client, instances), instances);
  }
}
