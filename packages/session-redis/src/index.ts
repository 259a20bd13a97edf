// The module and its options
export { RedisSessionModule } from './redis-session.module.js';
export type { RedisSessionOptionsFactory } from './redis-session.module-definition.js';
export type { RedisSessionModuleOptions } from './redis-session.options.js';

// Sessions in Redis
export { RedisSessionRepository } from './repository/redis-session.repository.js';

// Delivery of events
export {
  SessionEventGroups,
  type DeadLetterFilter,
  type SessionEventGroupInfo,
} from './delivery/session-event.groups.js';
export type { ConsumerState } from './delivery/group.state.js';
export type { SessionDeadLetter } from './delivery/session-dead-letter.js';
export type { RemoveGroupReply, ReplayReply } from './scripts/event-stream.scripts.js';

// Key-space notifications
export { KeyspaceNotificationListener } from './notifications/keyspace-notification.listener.js';
export type { KeyspaceNotification } from './notifications/keyspace-notification.js';
export type { KeyEventName } from './notifications/key-events.js';
export type {
  KeyspaceGap,
  KeyspaceHealth,
  KeyspaceState,
  KeyspaceSubscription,
  KeyspaceSubscriptionOptions,
} from './notifications/keyspace-subscription.options.js';

// Expiry
export { SESSION_CLEANUP_JOB } from './expiration/session-cleanup.job.js';
export { SessionExpirationSweeper, type SweepOptions } from './expiration/session-expiration.sweeper.js';
export type { SweepResult } from './expiration/sweep.tally.js';
