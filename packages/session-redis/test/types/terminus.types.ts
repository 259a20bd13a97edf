import type { HealthIndicatorResult } from '@nestjs/terminus';
import type { SessionHealthIndicator, SessionHealthOptions } from '@nest-session/redis/terminus';
import { expectTypeOf } from 'expect-type';

export async function healthOf(indicator: SessionHealthIndicator): Promise<void> {
  expectTypeOf(await indicator.isHealthy('sessions')).toEqualTypeOf<HealthIndicatorResult<'sessions'>>();
  await indicator.isHealthy('sessions', { late: '15m' });
  // @ts-expect-error a bare number has no unit
  await indicator.isHealthy('sessions', { late: 15 });
  // @ts-expect-error each result has a key
  await indicator.isHealthy();
  expectTypeOf<SessionHealthOptions>().toEqualTypeOf<{ readonly late?: string | 0 }>();
}
