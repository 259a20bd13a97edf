import { Controller, Get, Inject } from '@nestjs/common';
import { HealthCheck, HealthCheckService } from '@nestjs/terminus';
import { SessionHealthIndicator } from '@nest-session/redis/terminus';

/** A health route, as an application has it. */
@Controller('health')
export class HealthController {
  constructor(
    @Inject(HealthCheckService) private readonly health: HealthCheckService,
    @Inject(SessionHealthIndicator) private readonly sessions: SessionHealthIndicator,
  ) {}

  @Get()
  @HealthCheck()
  check() {
    return this.health.check([() => this.sessions.isHealthy('sessions')]);
  }
}
