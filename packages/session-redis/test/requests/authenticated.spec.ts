import { randomBytes } from 'node:crypto';
import { jest } from '@jest/globals';
import { Controller, Get, Post } from '@nestjs/common';
import { Authenticated, RecentlyAuthenticated, Session, SessionRepository, Sessions } from '@nest-session/core';
import { beginRequest, LeakGuard, SteppableRedisServer } from '@nest-session/test-infrastructure';
import { eventually, type HttpAgent, sessionOf, signIn } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { App } from '../support/app.fixture.js';
import { commandStats } from '../support/command.stats.js';
import { monitorOf } from '../support/monitor-of.js';

LeakGuard.install();

@Controller()
class AccountController {
  @Get('orders')
  @Authenticated()
  orders() {
    return 'orders';
  }

  @Get('password')
  @RecentlyAuthenticated('5m')
  password() {
    return 'password';
  }

  @Post('pay')
  @Authenticated()
  pay(@Session() session: Session) {
    return { by: session.principalName };
  }
}

@Controller('recent')
@RecentlyAuthenticated('5m')
class RecentController {
  @Get()
  @RecentlyAuthenticated('5m')
  recent() {
    return 'recent';
  }
}

const KEY = { id: 'k1', key: randomBytes(32).toString('base64') };

describe.each(['express', 'fastify'] as const)('guards on %s', (adapter) => {
  let redis: SteppableRedisServer;
  let client: Redis;
  let app: App;
  let ada: HttpAgent;

  beforeEach(async () => {
    redis = await SteppableRedisServer.start();
    await redis.stopClock();
    client = new Redis(redis.url, { retryStrategy: null });
    app = await App.start({
      adapter,
      session: { touchInterval: '20m' },
      redis: { url: redis.url, notifications: 'off', commandTimeout: '1s' },
      controllers: [AccountController, RecentController],
      handlers: false,
    });
    ada = await signIn(app.nest, { principalName: 'ada' });
    const { id } = (await sessionOf(app.nest, ada))!;
    await client.hset(`nest:session:sessions:${id}`, 'authenticatedAt', await now());
  });
  afterEach(async () => {
    await app.stop();
    client.disconnect();
    await redis.stop();
  });

  async function now(): Promise<number> {
    const [seconds, microseconds] = await client.time();
    return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
  }

  const statusOf = async (path: string) => (await ada.get(path)).status;

  it('measure the age of the sign-in by the clock of Redis', async () => {
    await redis.stepClock(300_000);
    expect([await statusOf('/password'), await statusOf('/recent')]).toEqual([200, 200]);
    await redis.stepClock(1);
    expect([await statusOf('/password'), await statusOf('/recent'), await statusOf('/orders')]).toEqual([
      401, 401, 200,
    ]);
    expect((await ada.get('/password')).json()).toEqual({
      statusCode: 401,
      message: 'Sign in again',
      error: 'Unauthorized',
      reason: 'not-recently-authenticated',
      maxAge: 300,
    });
  });

  it('ask Redis once for its time where it is needed, and nothing else beside the load', async () => {
    const cost = async (path: string) => {
      await client.config('RESETSTAT');
      expect(await statusOf(path)).toBe(200);
      const stats = await commandStats(client);
      return ['hgetall', 'pttl', 'time', 'evalsha'].map((command) => stats.get(command)?.calls ?? 0);
    };
    await statusOf('/orders');
    expect(await cost('/orders')).toEqual([1, 1, 0, 0]);
    expect(await cost('/password')).toEqual([1, 1, 1, 0]);
    expect(await cost('/recent')).toEqual([1, 1, 1, 0]);
  });

  it('answer 503 while Redis is down', async () => {
    await redis.stop();
    expect([await statusOf('/orders'), await statusOf('/password')]).toEqual([503, 503]);
  });
});

describe.each([
  { title: 'sessions as they are', redis: {} },
  { title: 'encrypted sessions in partitions', redis: { partitions: 4, encryption: { keys: [KEY] } } },
])('a request for one of $title that began before', ({ redis: options }) => {
  let redis: SteppableRedisServer;
  let client: Redis;
  let [app, other]: App[] = [];
  let ada: HttpAgent;

  beforeEach(async () => {
    redis = await SteppableRedisServer.start();
    client = new Redis(redis.url, { retryStrategy: null });
    const start = () =>
      App.start({
        session: { touchInterval: '20m', absoluteTimeout: '1h', timeout: '2h' },
        redis: { url: redis.url, notifications: 'off', commandTimeout: '1s', ...options },
        controllers: [AccountController],
        handlers: false,
      });
    [app, other] = [await start(), await start()];
    ada = await signIn(app.nest, { principalName: 'ada' });
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    await Promise.all([app?.stop(), other?.stop()]);
    client.disconnect();
    await redis.stop();
  });

  const callsOf = async (...commands: string[]) => {
    const stats = await commandStats(client);
    return commands.map((command) => stats.get(command)?.calls ?? 0);
  };

  /** Begins a request, and returns what sends the rest, a second after its session was loaded. */
  async function begin() {
    await client.config('RESETSTAT');
    const finish = beginRequest(ada, '/pay');
    await eventually(async () => expect(await callsOf('hgetall')).toEqual([1]));
    await client.config('RESETSTAT');
    const now = performance.now.bind(performance);
    return async () => {
      jest.spyOn(performance, 'now').mockImplementation(() => now() + 1001);
      return (await finish()).status;
    };
  }

  it.each<[string, () => unknown]>([
    ['end() on another instance', async () => idOf().then((id) => other!.nest.get(Sessions).end(id))],
    ['endAll() on another instance', () => other!.nest.get(Sessions).endAll('ada')],
    ['endEverySession() on another instance', () => other!.nest.get(Sessions).endEverySession()],
    ['the absolute timeout', () => redis.stepClock(3_600_000)],
    [
      'the end of a session that was rotated on another instance',
      async () => {
        const { id } = await rotated();
        await other!.nest.get(Sessions).end(id);
      },
    ],
  ])('%s is refused after it', async (_end, end) => {
    const finish = await begin();
    await end();
    // Of the end of every session, this instance hears within two seconds.
    await eventually(async () => expect((await ada.get('/orders')).status).toBe(401));
    expect(await finish()).toBe(401);
  });

  it('a rotation on another instance is answered, and its session still has its idle time', async () => {
    const finish = await begin();
    const session = await rotated();
    const before = await other!.nest.get(SessionRepository, { strict: false }).findById(session.id);
    await redis.stepClock(1000);
    expect(await finish()).toBe(201);
    const after = await other!.nest.get(SessionRepository, { strict: false }).findById(session.id);
    expect(after?.lastAccessedTime).toBe(before?.lastAccessedTime);
  });

  it('costs two commands in one round trip, and no attribute but the principal', async () => {
    const id = await idOf();
    const finish = await begin();
    const monitor = await monitorOf(client);
    const seen: string[] = [];
    // Those of the session alone: background work sends its own at any time.
    monitor.on('monitor', (_time, [command, ...args]: string[]) => {
      if (args.some((arg) => arg.includes(id))) seen.push(command!.toLowerCase());
    });
    expect(await finish()).toBe(201);
    await client.get(id);
    await eventually(() => expect(seen).toEqual(['hmget', 'pttl', 'get']));
    monitor.disconnect();
  });

  it('and whose session Redis cannot be asked about gets a 503', async () => {
    const finish = await begin();
    process.kill(redis.pid, 'SIGSTOP');
    try {
      expect(await finish()).toBe(503);
    } finally {
      process.kill(redis.pid, 'SIGCONT');
    }
  });

  async function idOf(): Promise<string> {
    return (await sessionOf(app!.nest, ada))!.id;
  }

  async function rotated() {
    const session = (await sessionOf(other!.nest, ada))!;
    session.changeSessionId();
    await session.save();
    return session;
  }
});
