// `@nest-session/redis-events/internal`: what the packages of @nest-session share. Not for applications, and outside of
// semantic versioning: it changes with every version.
export { CleanupJob } from './cleanup/cleanup.job.js';
export {
  type Claim,
  type ClaimReply,
  type DueEntries,
  type DueEntry,
  type DueList,
  type DueReply,
  DueSweeper,
  SweepCounter,
  type SweepOptions,
  type SweepResult,
  toClaim,
  toDueEntries,
} from './cleanup/due.sweeper.js';
export { DuePoller } from './cleanup/due-poller.js';
export {
  type Connection,
  LIMITED_SINCE,
  recordedPartitions,
  refuse,
  settledPartitions,
  shownCount,
} from './namespace/store-format.js';
export { OF_URL, readStore } from './configuration/redis-events.options.js';
export { VERSION } from './configuration/version.js';
export { lossOf, nodeMemory, StoreConnections } from './namespace/store-connections.js';
export { hiddenCommand } from './connection/own-commands.js';
export { infoOf, serverIn, shownAddress, tooOldProblem, unreachableError } from './connection/shown-server.js';
export { ALIVE, LivingInstances } from './namespace/living-instances.js';
export { isCluster, nodeWith, partitionsByNode, redisTime } from './connection/node-with.js';
export { OutageLog } from './connection/outage.log.js';
export { PartitionSignals } from './connection/partition-signals.js';
export {
  isOfCluster,
  readAddress,
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
export { ifStray, isAnswer, isFaultOfServer, isReply, untilSound } from './connection/server-faults.js';
export { RequestConnection, storeError } from './connection/request.connection.js';
export {
  DEAD_LETTER_BYTES,
  DELIVERY_OPTIONS,
  type DeliveryOptions,
  EVENT_RULES,
  type EventDeliveryOptions,
  eventRules,
  rangeOfPartitions,
  readCommandTimeout,
  readEvents,
  readPartitions,
} from './configuration/event-rules.js';
export { EventGroups } from './delivery/event-groups.js';
export { EventProducer } from './delivery/event-producer.js';
export { GroupLagReader, type GroupState, groupStates, livenessOf, RETRIES_CONSUMER } from './delivery/group-states.js';
export {
  byPosition,
  type EntryKind,
  fieldOf,
  isLater,
  nameOf,
  parsed,
  type Position,
  positionOf,
  positionText,
  type StreamEntry,
  textsIn,
  toStreamEntry,
} from './scripts/stream/stream-entry.js';
export { storeLifecycle, storeProviders, storeServices } from './lifecycle/store-module.js';
export { ContentStartLog, type ServicesOfStore, StoreStartLog } from './lifecycle/store.lifecycle.js';
export { FailureLog, logger } from './logging/failure.log.js';
export { shownCommand } from './logging/advice.js';
export { keyEventListener, KeyspaceNotificationListener } from './notifications/keyspace-notification.listener.js';
export {
  ALL_CLASSES,
  type KeyspaceHealth,
  type KeyspaceNotification,
  type KeyspaceState,
  type KeyspaceSubscription,
} from './notifications/keyspace-subscription.options.js';
export {
  emptyNamespaceProblem,
  namespaceBesideProblem,
  type NamespaceOwner,
  namespaceProblem,
  OF_SESSIONS,
  shownContent,
} from './partitions/namespace.js';
export { groupedBy, merged, PartitionKeys, Partitions, patternOf } from './partitions/partitions.js';
export {
  defineScripts,
  loadScripts,
  loadScript,
  type RunScript,
  scriptsOn,
  type ScriptsOn,
} from './scripts/define-scripts.js';
export { LUA_SOURCES as EVENT_SOURCES } from './scripts/lua-sources.js';
export { EventStreamScripts } from './scripts/event-stream.scripts.js';
export { type BackgroundService, RETRY, settledWithin } from './timing/background-service.js';
export { BackgroundLimiter, Pace } from './timing/background.limiter.js';
