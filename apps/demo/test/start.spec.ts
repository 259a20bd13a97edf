import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, HttpAgent, RedisServer } from '@nest-session/testing';

LeakGuard.install();

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

// Enough time to build the demo on a busy machine.
const SLOWLY = { timeout: 180_000 };

/** `npm start` as in a terminal. */
class NpmStart {
  readonly #child: ChildProcess;
  readonly exit: Promise<unknown[]>;
  output = '';

  constructor(env: NodeJS.ProcessEnv) {
    // Detached: a process group of its own, as in a terminal.
    this.#child = spawn('npm', ['start'], { cwd: ROOT, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    this.exit = once(this.#child, 'close');
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => (this.output += text));
    }
  }

  /** Resolves to the address of the demo as soon as it prints it. */
  origin(): Promise<string> {
    return eventually(() => {
      const address = /^Open (http:\/\/127\.0\.0\.1:\d+)$/m.exec(this.output)?.[1];
      if (!address) throw new Error(`No address in: ${this.output}`);
      return address;
    }, SLOWLY);
  }

  /** Sends the signal to all processes of the group, as a terminal does. */
  ctrlC(): void {
    process.kill(-this.#child.pid!, 'SIGINT');
  }

  kill(): void {
    if (this.#child.exitCode === null && this.#child.signalCode === null) process.kill(-this.#child.pid!, 'SIGKILL');
  }
}

describe('npm start', () => {
  /** The folder for temporary files, in which leftovers would be. */
  let temporary: string;
  let usualPort: Server;
  let program: NpmStart | undefined;

  beforeAll(async () => {
    // The port is taken, by this test or by another process: both are fine.
    usualPort = createServer().listen(3000, '127.0.0.1');
    await Promise.race([once(usualPort, 'listening'), once(usualPort, 'error')]).catch(() => undefined);
  });
  afterAll(() => usualPort.close());

  beforeEach(async () => {
    temporary = await mkdtemp(join(tmpdir(), 'npm-start-'));
  });
  afterEach(async () => {
    program?.kill();
    await program?.exit;
    await rm(temporary, { recursive: true, force: true });
  });

  function start(env: NodeJS.ProcessEnv = {}): NpmStart {
    const unset = {
      HOST: undefined,
      PORT: undefined,
      REDIS_URL: undefined,
      SESSION_STORE: undefined,
      COMMAND_TIMEOUT: '30s',
    };
    program = new NpmStart({ ...process.env, ...unset, TMPDIR: temporary, NO_COLOR: '1', ...env });
    return program;
  }

  async function fillCart(origin: string): Promise<string> {
    const agent = new HttpAgent(origin);
    expect((await agent.post('/cart', { name: 'apple' })).status).toBe(201);
    return (await agent.get('/session')).json<{ id: string }>().id;
  }

  async function refusesConnections(origin: string): Promise<void> {
    await expect(new HttpAgent(origin).get('/')).rejects.toThrow('ECONNREFUSED');
  }

  it(
    'runs the demo on a free port with its own Redis, and Ctrl-C leaves nothing behind',
    async () => {
      const { exit } = start();
      const origin = await program!.origin();
      expect(program!.output).toContain(`Port 3000 is taken, ${new URL(origin).port} is used instead.`);
      const folder = (await readdir(temporary)).find((name) => name.startsWith('redis-'))!;
      const redis = new Redis({ path: join(temporary, folder, 'redis.sock'), retryStrategy: () => null });
      redis.on('error', () => undefined);
      const isOver = once(redis, 'end');
      const id = await fillCart(origin);
      expect(await redis.exists(`nest:session:sessions:${id}`)).toBe(1);

      program!.ctrlC();
      expect(await exit).toEqual([0, null]);
      await isOver;
      expect(await readdir(temporary)).toEqual([]);
      await refusesConnections(origin);
    },
    SLOWLY.timeout,
  );

  it(
    'keeps the sessions in memory, and says so, when there is no redis-server',
    async () => {
      const { exit } = start({ REDIS_SERVER: join(temporary, 'none') });
      const origin = await program!.origin();
      expect(program!.output).toContain('WITHOUT REDIS: sessions are kept in memory and end with this process.');
      expect(program!.output).toContain('install Redis 7 or later, or set REDIS_SERVER to its path.');
      await fillCart(origin);
      program!.ctrlC();
      expect(await exit).toEqual([0, null]);
      expect(await readdir(temporary)).toEqual([]);
    },
    SLOWLY.timeout,
  );

  it(
    'uses the Redis of REDIS_URL and the port of PORT, and starts no Redis',
    async () => {
      const redis = await RedisServer.start();
      const client = new Redis(redis.url);
      try {
        const { exit } = start({ REDIS_URL: redis.url, PORT: '0' });
        const id = await fillCart(await program!.origin());
        expect(program!.output).not.toContain('Port 3000');
        expect(await client.exists(`nest:session:sessions:${id}`)).toBe(1);
        expect(await readdir(temporary)).toEqual([]);
        program!.ctrlC();
        expect(await exit).toEqual([0, null]);
        expect(await client.ping()).toBe('PONG');
      } finally {
        client.disconnect();
        await redis.stop();
      }
    },
    SLOWLY.timeout,
  );

  it(
    'refuses an invalid PORT, and leaves no Redis behind',
    async () => {
      const { exit } = start({ PORT: 'http' });
      expect(await exit).toEqual([1, null]);
      expect(program!.output).toContain('PORT is http: it must be a number from 0 to 65535.');
      expect(await readdir(temporary)).toEqual([]);
    },
    SLOWLY.timeout,
  );
});
