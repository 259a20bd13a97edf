import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually, freePort, type RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';

// Milliseconds. A master that stalls for a while is not down.
const NOT_LOOKING = 600_000;
const LOOKING = 1000;

/** One Sentinel that watches a master and alone decides that it is down, not before `look()`. */
export class Sentinel {
  private constructor(
    private readonly name: string,
    private readonly child: ChildProcess,
    private readonly home: string,
    readonly port: number,
  ) {}

  /** Resolves when it knows the replica of the master, and so could fail over. */
  static async start(name: string, master: RedisServer): Promise<Sentinel> {
    const home = await mkdtemp(join(tmpdir(), 'sentinel-'));
    const port = await freePort();
    const config = join(home, 'sentinel.conf');
    await writeFile(
      config,
      [
        `port ${port}`,
        'bind 127.0.0.1',
        `dir ${home}`,
        `sentinel monitor ${name} 127.0.0.1 ${master.port} 1`,
        `sentinel down-after-milliseconds ${name} ${NOT_LOOKING}`,
        `sentinel failover-timeout ${name} 5000`,
      ].join('\n'),
    );
    // The shell ends it when this process has ended, which closes its standard input.
    const script = '"$0" "$1" --sentinel >/dev/null & read -r _; kill -9 $!';
    const program = process.env['REDIS_SERVER'] ?? 'redis-server';
    const child = spawn('/bin/sh', ['-c', script, program, config], { stdio: ['pipe', 'ignore', 'ignore'] });
    const client = new Redis(port, { retryStrategy: () => 50 }).on('error', () => undefined);
    // It asks the master every ten seconds, and the replica may have connected just after that.
    const isKnown = async () => ((await client.call('SENTINEL', 'REPLICAS', name)) as unknown[]).length > 0;
    await eventually(isKnown, { timeout: 60_000 });
    client.disconnect();
    return new Sentinel(name, child, home, port);
  }

  /** From now on, a master whose last reply is a second old is down. */
  async look(): Promise<void> {
    await this.#setDownAfter(LOOKING);
  }

  /** Ends what `look()` has begun. */
  async lookAway(): Promise<void> {
    await this.#setDownAfter(NOT_LOOKING);
  }

  /** The port of the server that is the master. */
  async masterPort(): Promise<number> {
    const asked = this.#ask((client) => client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', this.name));
    const [, port] = (await asked) as [string, string];
    return Number(port);
  }

  async stop(): Promise<void> {
    const ended = once(this.child, 'exit');
    this.child.stdin!.end();
    await ended;
    await rm(this.home, { recursive: true, force: true });
  }

  async #setDownAfter(milliseconds: number): Promise<void> {
    await this.#ask((client) =>
      client.call('SENTINEL', 'SET', this.name, 'down-after-milliseconds', `${milliseconds}`),
    );
  }

  async #ask(command: (client: Redis) => Promise<unknown>): Promise<unknown> {
    const client = new Redis(this.port);
    try {
      return await command(client);
    } finally {
      client.disconnect();
    }
  }
}
