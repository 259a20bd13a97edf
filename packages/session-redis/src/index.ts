// The module and its options
export { RedisSessionModule } from './redis-session.module.js';
export type { RedisSessionOptionsFactory } from './redis-session.module-definition.js';
export type { RedisSessionModuleOptions } from './redis-session.options.js';

// Sessions in Redis
export { RedisSessionRepository } from './repository/redis-session.repository.js';

// Expiry
export { SESSION_CLEANUP_JOB } from './expiration/session-cleanup.job.js';
export {
  SessionExpirationSweeper,
  type SweepOptions,
  type SweepResult,
} from './expiration/session-expiration.sweeper.js';
