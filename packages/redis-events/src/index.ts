// `@nest-session/redis-events`: events in Redis that every group handles, and key events of Redis, for any key.
export type { EventDeliveryOptions } from './configuration/event-rules.js';
export {
  OnRedisEvent,
  type OnRedisEventOptions,
  RedisEvent,
  type RedisEventData,
  RedisEventDataError,
  type RedisEventInit,
  type RedisEventTypes,
} from './events/redis-event.js';
export { type RedisEventDeadLetter, RedisEventGroups, RedisEvents } from './events/redis-events.js';
export { RedisEventsModule } from './events/redis-events.module.js';
export type { RedisEventsModuleOptions, RedisEventsOptionsFactory } from './configuration/redis-events.options.js';
export { KeyspaceNotificationListener } from './notifications/keyspace-notification.listener.js';
export type {
  KeyEventName,
  KeyspaceGap,
  KeyspaceHealth,
  KeyspaceNotification,
  KeyspaceState,
  KeyspaceSubscription,
  KeyspaceSubscriptionOptions,
} from './notifications/keyspace-subscription.options.js';
