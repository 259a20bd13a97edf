// What an application with `exactOptionalPropertyTypes` writes. Checked by npm run typecheck.
import { RedisSessionModule } from '@nest-session/redis';
import { RedisDeadlineModule } from '@nest-session/deadlines/redis';

/** The variable may be unset: the log then has a warning. */
export function address(): unknown[] {
  return [
    RedisSessionModule.forRoot({ url: process.env.REDIS_URL }),
    RedisSessionModule.forRootAsync({ useFactory: () => ({ url: process.env.REDIS_URL }) }),
    RedisDeadlineModule.forRoot({ url: process.env.REDIS_URL }),
  ];
}
