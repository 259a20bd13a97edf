import { TerminusModule } from '@nestjs/terminus';
import { SessionHealthIndicator } from '@nest-session/redis/terminus';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { App } from '../support/app.fixture.js';
import { HealthController } from '../support/health.controller.js';

LeakGuard.install();

it.each(['express', 'fastify'] as const)(
  '@nestjs/terminus reports the sessions as up, and as down once Redis is, on %s',
  async (adapter) => {
    const redis = await RedisServer.start();
    const app = await App.start({
      adapter,
      redis: { url: redis.url, notifications: 'off', commandTimeout: '1s' },
      imports: [TerminusModule.forRoot({ logger: false })],
      controllers: [HealthController],
      providers: [SessionHealthIndicator],
    });
    const health = async () => {
      const { status, ...response } = await app.agent().get('/health');
      return { status, details: response.json<{ details: unknown }>().details };
    };
    expect(await health()).toMatchObject({ status: 200, details: { sessions: { status: 'up', redis: 'up' } } });
    await redis.stop();
    expect(await health()).toMatchObject({ status: 503, details: { sessions: { status: 'down', redis: 'down' } } });
    await app.stop();
  },
);
