// `@nest-session/redis-events/internal`: what the packages of @nest-session share. Not for applications, and outside of
// semantic versioning: it changes with every version.
export { CleanupJob } from './cleanup/cleanup.job.js';
export { CLEANUP_PROVIDERS, CLEANUP_SCHEDULE, type CleanupSchedule } from './cleanup/cleanup.providers.js';
export {
  type ClaimReply,
  type DueEntries,
  type DueEntry,
  type DueReply,
  toClaim,
  toDueEntries,
} from './cleanup/due-entries.js';
export { DuePoller } from './cleanup/due-poller.js';
export { type DueList, DueSweeper, type SweepOptions } from './cleanup/due.sweeper.js';
export { type Claim, type Found, SweepCounter, type SweepResult } from './cleanup/sweep.counter.js';
export {
  type Connection,
  LIMITED_SINCE,
  recordedPartitions,
  refuse,
  settledPartitions,
  shownCount,
} from './connection/check-store.js';
export { VERSION } from './configuration/version.js';
export { CONNECTION_PROVIDERS, SHARED_CONNECTIONS } from './connection/connection.providers.js';
export { lossOf } from './connection/eviction.check.js';
export { hiddenCommand } from './connection/hide-arguments.js';
export { infoOf } from './connection/info-of.js';
export { ALIVE, LivingInstances } from './connection/living-instances.js';
export { nodeMemory } from './connection/node-memory.js';
export { isCluster, nodeWith, partitionsByNode } from './connection/node-with.js';
export { OutageLog } from './connection/outage.log.js';
export { PartitionSignals } from './connection/partition-signals.js';
export {
  isOfCluster,
  readAddress,
  readAddressOrShare,
  type RedisAddress,
  type RedisAddressOptions,
} from './connection/redis-address.options.js';
export {
  closeConnections,
  CONNECTION_OPTIONS,
  type ConnectionOptions,
  CONNECTIONS_TO_SHARE,
  type ConnectionsToShare,
  connectionToken,
  createConnections,
  InjectConnection,
  REDIS_CONNECTIONS,
  type RedisConnections,
} from './connection/redis-connections.js';
export type { RedisNodes } from './connection/redis-nodes.js';
export { redisTime } from './connection/redis-time.js';
export { isAnswer, isReply } from './connection/reply.errors.js';
export { RequestConnection, storeError } from './connection/request.connection.js';
export { shownAddress } from './connection/shown-address.js';
export { serverIn, tooOldProblem } from './connection/shown-server.js';
export { StoreConnections } from './connection/store-connections.js';
export { isFaultOfServer, RETRY, untilSound } from './connection/until-sound.js';
export { unreachableError, withConnections } from './connection/with-connections.js';
export { DeadLetterReader } from './delivery/dead-letter.reader.js';
export {
  type EventDeliveryOptions,
  IN_URL,
  rangeOfPartitions,
  readCommandTimeout,
  readEvents,
  readPartitions,
  type ResolvedEventOptions,
} from './configuration/delivery.options.js';
export { DELIVERY_PROVIDERS } from './delivery/delivery.providers.js';
export { DELIVERY_OPTIONS, EVENT_RULES } from './delivery/delivery.tokens.js';
export { EventGroups } from './delivery/event-groups.js';
export { EventProducer, type HandlersFailure } from './delivery/event-producer.js';
export { type DeliveryOptions, eventRules } from './delivery/event-rules.js';
export { EventBroadcaster } from './delivery/event.broadcaster.js';
export { EventConsumer } from './delivery/event.consumer.js';
export { type GroupLag, GroupLagReader } from './delivery/group-lag.reader.js';
export { type GroupState, groupStates, livenessOf, RETRIES_CONSUMER } from './delivery/group-state.js';
export { byPosition, isLater, type Position, positionOf, positionText } from './delivery/stream-position.js';
export { type ServicesOfStore, StoreLifecycle } from './lifecycle/store.lifecycle.js';
export { ContentStartLog } from './lifecycle/content-start.log.js';
export { StoreStartLog } from './lifecycle/store-start.log.js';
export { FailureLog } from './logging/failure.log.js';
export { type Finding, FindingCounter } from './logging/findings.js';
export { logger } from './logging/redis-session.logger.js';
export { shownCommand } from './logging/shown-command.js';
export { keyEventListener } from './notifications/key-event-listener.js';
export { ALL_CLASSES } from './notifications/key-event-names.js';
export type { KeyspaceNotification } from './notifications/keyspace-notification.js';
export { KeyspaceNotificationListener } from './notifications/keyspace-notification.listener.js';
export type {
  KeyspaceHealth,
  KeyspaceState,
  KeyspaceSubscription,
} from './notifications/keyspace-subscription.options.js';
export {
  emptyNamespaceProblem,
  namespaceBesideProblem,
  namespaceProblem,
  PartitionKeys,
  patternOf,
} from './partitions/partition-keys.js';
export { type NamespaceOwner, OF_SESSIONS, Partitions, shownContent } from './partitions/partitions.js';
export { defineScripts, loadScripts, type ScriptsByName, scriptsOn, type ScriptsOn } from './scripts/define-scripts.js';
export { LUA_SOURCES as EVENT_SOURCES } from './scripts/lua-sources.js';
export type { ScriptSources } from './scripts/script.loader.js';
export { DEAD_LETTER_BYTES, EventStreamScripts } from './scripts/stream/event-stream.scripts.js';
export {
  type EntryKind,
  fieldOf,
  nameOf,
  parsed,
  type StreamEntry,
  textsIn,
  toStreamEntry,
} from './scripts/stream/stream-entry.js';
export type { BackgroundService } from './timing/background-service.js';
export { BackgroundLimiter } from './timing/background.limiter.js';
export { Pace } from './timing/pace.js';
export { settledWithin } from './timing/settled-within.js';
