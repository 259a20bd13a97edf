import { fileURLToPath } from 'node:url';
import { SteppableRedisServer } from '@nest-session/test-infrastructure';
import { Redis } from 'ioredis';
import { SIGNING_KEYS } from '../../../../session-core/test/support/signing.keys.js';
import { WorkerProcess } from '../../support/worker.process.js';

const PROGRAM = fileURLToPath(new URL('../../support/fuzzed.mjs', import.meta.url));
const LISTENING = /^listening (.+)$/;

export type Adapter = 'express' | 'fastify';

/** What the application has done so far. */
export interface Counts {
  /** By path and status. */
  readonly responses: Readonly<Record<string, number>>;
  readonly events: Readonly<Record<'created' | 'id-changed' | 'signed-in' | 'deleted' | 'expired', number>>;
}

/** `fuzzed.mjs` in a process of its own, on a Redis of its own. */
export class FuzzedApplication {
  readonly url: string;
  #commands = 0;

  private constructor(
    readonly redis: SteppableRedisServer,
    readonly client: Redis,
    private readonly worker: WorkerProcess,
  ) {
    const [url] = worker.lines.flatMap((line) => LISTENING.exec(line)?.slice(1) ?? []);
    this.url = url!;
  }

  static async start(adapter: Adapter, configuration: string): Promise<FuzzedApplication> {
    const redis = await SteppableRedisServer.start();
    const environment = {
      ADAPTER: adapter,
      CONFIGURATION: configuration,
      REDIS_URL: redis.url,
      SIGNING_KEYS: SIGNING_KEYS.join(' '),
    };
    const options = { program: PROGRAM, ready: LISTENING, nodeArguments: ['--expose-gc'] };
    return new FuzzedApplication(redis, new Redis(redis.url), await WorkerProcess.start(environment, options));
  }

  /** Every line that the process has printed: its log, and what Node.js says of it. */
  get log(): string[] {
    return this.worker.lines.filter((line) => !/^(done \d+|listening) /.test(line));
  }

  counts(): Promise<Counts> {
    return this.#ask('counts') as Promise<Counts>;
  }

  /** Bytes, after a collection. */
  heap(): Promise<number> {
    return this.#ask('heap') as Promise<number>;
  }

  async endEverySession(): Promise<void> {
    await this.#ask('end');
  }

  /** Bytes that all keys take in Redis. */
  async storedBytes(): Promise<number> {
    const keys = await this.client.keys('*');
    const sizes = await Promise.all(keys.map((key) => this.client.memory('USAGE', key, 'SAMPLES', 0)));
    return sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
  }

  async stop(): Promise<void> {
    await this.worker.end();
    this.client.disconnect();
    await this.redis.stop();
  }

  async #ask(command: string): Promise<unknown> {
    const done = new RegExp(`^done ${++this.#commands} (.*)$`);
    this.worker.tell(`${this.#commands} ${command}`);
    await this.worker.saysLine(done);
    const [answer] = this.worker.lines.flatMap((line) => done.exec(line)?.slice(1) ?? []);
    return JSON.parse(answer!);
  }
}
