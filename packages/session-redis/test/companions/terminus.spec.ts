import { Controller, Get, Inject } from '@nestjs/common';
import { HealthCheck, HealthCheckService, HealthIndicatorService, TerminusModule } from '@nestjs/terminus';
import { SessionRepository } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { App } from '../support/app.fixture.js';

LeakGuard.install();

@Controller('health')
class HealthController {
  constructor(
    @Inject(HealthCheckService) private readonly health: HealthCheckService,
    @Inject(HealthIndicatorService) private readonly indicators: HealthIndicatorService,
    @Inject(SessionRepository) private readonly sessions: SessionRepository,
  ) {}

  @Get()
  @HealthCheck()
  check() {
    return this.health.check([() => this.store()]);
  }

  private async store() {
    const indicator = this.indicators.check('store');
    try {
      await this.sessions.findById(this.sessions.createSession().id);
      return indicator.up();
    } catch {
      return indicator.down();
    }
  }
}

it.each(['express', 'fastify'] as const)(
  '@nestjs/terminus reports the store as up, and as down once Redis is, on %s',
  async (adapter) => {
    const redis = await RedisServer.start();
    const app = await App.start({
      adapter,
      redis: { url: redis.url, commandTimeout: '1s' },
      imports: [TerminusModule.forRoot({ logger: false })],
      controllers: [HealthController],
    });
    const health = async () => {
      const { status, ...response } = await app.agent().get('/health');
      return { status, details: response.json<{ details: unknown }>().details };
    };
    expect(await health()).toEqual({ status: 200, details: { store: { status: 'up' } } });
    await redis.stop();
    expect(await health()).toEqual({ status: 503, details: { store: { status: 'down' } } });
    await app.stop();
  },
);
