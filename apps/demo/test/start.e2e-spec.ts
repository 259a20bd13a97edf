import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, HttpAgent, RedisServer } from '@nest-session/testing';
import { NpmStart } from './support/npm-start.js';

LeakGuard.install();

// Enough time to build the demo on a busy machine.
const SLOWLY = { timeout: 180_000 };

describe('npm start', () => {
  let usualPort: Server;
  let program: NpmStart;

  beforeAll(async () => {
    // The port is taken, by this test or by another process: both are fine.
    usualPort = createServer().listen(3000, '127.0.0.1');
    await Promise.race([once(usualPort, 'listening'), once(usualPort, 'error')]).catch(() => undefined);
  });
  afterAll(() => usualPort.close());

  afterEach(() => program.stop());

  async function start(env: NodeJS.ProcessEnv = {}, args: string[] = []): Promise<NpmStart> {
    program = await NpmStart.run({ env: { COMMAND_TIMEOUT: '30s', ...env }, args });
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
      const { exit } = await start();
      const origin = await program.origin();
      expect(program.output).toContain(`Port 3000 is taken, ${new URL(origin).port} is used instead.`);
      const folder = (await program.leftovers()).find((name) => name.startsWith('redis-'))!;
      const redis = new Redis({ path: join(program.temporary, folder, 'redis.sock'), retryStrategy: () => null });
      redis.on('error', () => undefined);
      const isOver = once(redis, 'end');
      const id = await fillCart(origin);
      expect(await redis.exists(`nest:session:sessions:${id}`)).toBe(1);

      program.ctrlC();
      expect(await exit).toEqual([0, null]);
      await isOver;
      expect(await program.leftovers()).toEqual([]);
      await eventually(async () => expect(await program.processes()).toEqual([]));
      await refusesConnections(origin);
    },
    SLOWLY.timeout,
  );

  it(
    'keeps the sessions in memory, and says so, when there is no redis-server',
    async () => {
      const { exit } = await start({ REDIS_SERVER: '/nowhere/redis-server' });
      const origin = await program.origin();
      expect(program.output).toContain('WITHOUT REDIS: sessions are kept in memory and end with this process.');
      expect(program.output).toContain('install Redis 7 or later, or set REDIS_SERVER to its path.');
      await fillCart(origin);
      program.ctrlC();
      expect(await exit).toEqual([0, null]);
      expect(await program.leftovers()).toEqual([]);
    },
    SLOWLY.timeout,
  );

  it(
    'uses the Redis of REDIS_URL and the port of PORT, and starts no Redis',
    async () => {
      const redis = await RedisServer.start();
      const client = new Redis(redis.url);
      try {
        const { exit } = await start({ REDIS_URL: redis.url, PORT: '0' });
        const id = await fillCart(await program.origin());
        expect(program.output).not.toContain('Port 3000');
        expect(await client.exists(`nest:session:sessions:${id}`)).toBe(1);
        expect(await program.leftovers()).toEqual([]);
        program.ctrlC();
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
      const { exit } = await start({ PORT: 'http' });
      expect(await exit).toEqual([1, null]);
      expect(program.output).toContain('PORT is http: it must be a number from 0 to 65535.');
      expect(await program.leftovers()).toEqual([]);
    },
    SLOWLY.timeout,
  );

  it(
    'refuses a number of instances that it cannot start',
    async () => {
      const { exit } = await start({}, ['--instances', 'two']);
      expect(await exit).toEqual([1, null]);
      expect(program.output).toContain('--instances is two: it must be a number from 1 to 8.');
    },
    SLOWLY.timeout,
  );
});
