// `@nest-session/redis-events`: key events of Redis, for any key.
export { KeyspaceNotificationListener } from './notifications/keyspace-notification.listener.js';
export type { KeyspaceNotification } from './notifications/keyspace-notification.js';
export type { KeyEventName } from './notifications/key-event-names.js';
export type {
  KeyspaceGap,
  KeyspaceHealth,
  KeyspaceState,
  KeyspaceSubscription,
  KeyspaceSubscriptionOptions,
} from './notifications/keyspace-subscription.options.js';
