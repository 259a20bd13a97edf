import { Controller, Get } from '@nestjs/common';
import { Authenticated, RecentlyAuthenticated } from '@nest-session/core';
import { LeakGuard, SteppableRedisServer } from '@nest-session/test-infrastructure';
import { type HttpAgent, sessionOf, signIn } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { App } from '../support/app.fixture.js';
import { commandStats } from '../support/command.stats.js';

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
