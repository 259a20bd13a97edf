export { RedisSessionModule } from './redis-session.module.js';
export { type RedisAddressOptions } from '@nest-session/redis-events/internal';
export type { RedisSessionModuleOptions, RedisSessionOptionsFactory } from './configuration/redis-session.options.js';
export { RedisSessionRepository } from './repository/redis-session.repository.js';
export { SessionEncryptionError } from './encryption/session-encryption.error.js';
export { SESSION_CLEANUP_JOB, SessionExpirationSweeper } from './expiration/session-expiration.sweeper.js';
export type { AskAboutSession, SessionTimer } from './timers/session-timer.js';
export {
  type SessionDeadLetter,
  type SessionEventGroupInfo,
  SessionEventGroups,
} from './session-events/session-event-groups.js';
export type { RemoveGroupReply, ReplayReply } from '@nest-session/core/internal';
