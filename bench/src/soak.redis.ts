import { Sentinel, SteppableRedisServer } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { Redis } from 'ioredis';

const NAME = 'soak';
// A minute of the day is about a second here: by its clock, a replica is silent for a minute at each step.
const REPLICATION = ['--repl-timeout', '100000', '--repl-diskless-sync-delay', '0'];
const PATIENT = { timeout: 60_000, interval: 50 };

/** What a Redis takes at a moment. */
export interface RedisFigures {
  /** `used_memory`, in bytes. */
  readonly memory: number;
  /** `used_memory_dataset`, in bytes. */
  readonly dataset: number;
  /** `mem_replication_backlog`, in bytes. It is among the memory, and fills up to a fixed size. */
  readonly backlog: number;
  readonly keys: number;
}

/** A primary with a replica, whose clocks are stepped together, and a Sentinel. */
export class SoakRedis {
  readonly #clients = new Map<SteppableRedisServer, Redis>();

  private constructor(
    private primary: SteppableRedisServer,
    private replica: SteppableRedisServer,
    private readonly sentinel: Sentinel,
  ) {
    for (const each of [primary, replica]) {
      this.#clients.set(
        each,
        new Redis(each.url, { retryStrategy: () => 50 }).on('error', () => undefined),
      );
    }
  }

  static async start(): Promise<SoakRedis> {
    const primary = await SteppableRedisServer.start({ args: REPLICATION });
    const of = ['--replicaof', `127.0.0.1 ${primary.port}`];
    const replica = await SteppableRedisServer.start({ args: [...REPLICATION, ...of] });
    const redis = new SoakRedis(primary, replica, await Sentinel.start(NAME, primary));
    await redis.#untilReplicated();
    return redis;
  }

  /** The port of the Sentinel and the name of the master. */
  get address(): readonly [port: number, name: string] {
    return [this.sentinel.port, NAME];
  }

  async version(): Promise<string | undefined> {
    return /redis_version:(\S+)/.exec(await this.#client.info('server'))?.[1];
  }

  async step(milliseconds: number): Promise<void> {
    await Promise.all([this.primary, this.replica].map((server) => server.stepClock(milliseconds)));
    // A server reads its clock at a command, or 100 ms later. A replica that loses its primary in between dates that
    // back to before the step, and a Sentinel does not promote a replica that has been alone for a minute.
    await Promise.all([...this.#clients.values()].map((client) => client.ping()));
  }

  /** Kills the primary. Resolves when the replica has taken its place, and the killed one is the replica. */
  async failOver(): Promise<void> {
    const [killed, promoted] = [this.primary, this.replica];
    await killed.kill();
    await this.sentinel.look();
    await eventually(async () => (await this.sentinel.masterPort()) === promoted.port, PATIENT);
    await this.sentinel.lookAway();
    [this.primary, this.replica] = [promoted, killed];
    await killed.restart();
    await this.#clients.get(killed)!.replicaof('127.0.0.1', promoted.port);
    await this.#untilReplicated();
  }

  async figures(): Promise<RedisFigures> {
    const memory = await this.#client.info('memory');
    const field = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(memory)?.[1]);
    return {
      memory: field('used_memory'),
      dataset: field('used_memory_dataset'),
      backlog: field('mem_replication_backlog'),
      keys: await this.#client.dbsize(),
    };
  }

  async stop(): Promise<void> {
    for (const client of this.#clients.values()) client.disconnect();
    await this.sentinel.stop();
    await Promise.all([this.primary.stop(), this.replica.stop()]);
  }

  get #client(): Redis {
    return this.#clients.get(this.primary)!;
  }

  async #untilReplicated(): Promise<void> {
    await eventually(async () => {
      // Replicated, and without a key.
      await this.#client.publish('replicated', '');
      return (await this.#client.wait(1, 100)) === 1;
    }, PATIENT);
  }
}
