import { SpringSessionModule, type SpringSessionModuleOptions, springSessions } from '@nest-session/spring';
import { App, type AppOptions } from '../../../session-redis/test/support/app.fixture.js';
import { PATIENCE } from '../../../session-redis/test/support/patience.js';

/** Starts the application of the fixture, with the sessions of Spring. */
export function startWithSpring(
  spring: SpringSessionModuleOptions,
  options: Omit<AppOptions, 'redis' | 'store'> = {},
): Promise<App> {
  const store = SpringSessionModule.forRoot({ commandTimeout: PATIENCE, ...spring });
  return App.start({ session: springSessions(), ...options, store });
}
