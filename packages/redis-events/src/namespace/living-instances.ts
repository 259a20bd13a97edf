import { PollingLoop } from '@nest-session/core/store';
import { namespaceScripts } from '../scripts/namespace/namespace.scripts.js';
import type { Partitions } from '../partitions/partitions.js';
import type { BackgroundService } from '../timing/background-service.js';
import type { Connection } from './store-format.js';
import { untilSound } from '../connection/server-faults.js';

const SIGN_INTERVAL = 10_000;
/** For how long it then counts as alive, in milliseconds. */
export const ALIVE = 3 * SIGN_INTERVAL;
// Milliseconds. Instances that were killed are forgotten after a day.
const KEPT = 86_400_000;
const NOBODY = '';

/** The instances of a namespace that are alive. Each signs before it reads which partitions there are. */
export class LivingInstances implements BackgroundService {
  readonly #stopping = new AbortController();
  // Where Redis allows no sign, the next one is tried all the same.
  readonly #signing = new PollingLoop('The sign of life', SIGN_INTERVAL, () =>
    untilSound(() => this.runOnce(), this.#stopping.signal).catch(() => undefined),
  );
  #enterAgain: (() => Promise<void>) | undefined;
  #signs: Promise<void> = Promise.resolve();

  constructor(
    private readonly connection: Connection,
    private readonly partitions: Pick<Partitions, 'instances'>,
    private readonly name = NOBODY,
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

  async sign(): Promise<boolean> {
    const [isNew] = await this.#sign(this.name);
    return isNew === 1;
  }

  async leave(connection = this.connection): Promise<void> {
    const { instances } = this.partitions;
    await connection.run((client) => client.zrem(instances, this.name), instances);
  }

  async others(): Promise<string[]> {
    const [, ...names] = await this.#sign(NOBODY);
    return names.filter((name) => name !== this.name);
  }

  /** Forgets all that are not alive, so that one that comes back notices it. */
  async forgetSilent(): Promise<void> {
    await this.#sign(NOBODY, ALIVE);
  }

  #sign(name: string, kept = KEPT) {
    const { instances } = this.partitions;
    return this.connection.run(
      (client) =>
        namespaceScripts(client)<[isNew: number, ...living: string[]]>(
          'sign-instance',
          [instances],
          [name, ALIVE, kept],
        ),
      instances,
    );
  }
}
