import type { Provider } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { DEADLINE_READER, givenOptions, MEASURED_DEADLINES } from '@nest-session/core/internal';
import { DeadlineEvents } from '../deadlines/deadline.events.js';
import { DeadlineStore } from '../deadlines/deadline.store.js';
import type { Redis } from 'ioredis';
import {
  CLEANUP_PROVIDERS,
  CLEANUP_SCHEDULE,
  CleanupJob,
  type CleanupSchedule,
  CONNECTION_OPTIONS,
  CONNECTION_PROVIDERS,
  CONNECTIONS_TO_SHARE,
  type ConnectionsToShare,
  connectionToken,
  ContentStartLog,
  DELIVERY_OPTIONS,
  DELIVERY_PROVIDERS,
  type DeliveryOptions,
  type DueList,
  DuePoller,
  DueSweeper,
  EventBroadcaster,
  EventConsumer,
  EventProducer,
  LivingInstances,
  Partitions,
  PartitionSignals,
  type ScriptsOn,
  scriptsOn,
  SHARED_CONNECTIONS,
  StoreConnections,
  storeLifecycle,
} from '@nest-session/redis-events/internal';
import { tracedPass } from '@nest-session/redis/internal';
import { DeadlineEncryption } from './deadline-encryption.js';
import { type DeadlineKeys, DeadlinePartitions } from './deadline-keys.js';
import { DeadlineScripts } from '../scripts/deadlines/deadline.scripts.js';
import { DeadlineEventProducer } from './deadline-event-producer.js';
import { DeadlineSweeper } from './deadline.sweeper.js';
import { RedisDeadlineEvents } from './redis-deadline.events.js';
import {
  REDIS_DEADLINE_MODULE_OPTIONS,
  REDIS_DEADLINE_OPTIONS,
  type RedisDeadlineModuleOptions,
  type ResolvedRedisDeadlineOptions,
  resolveRedisDeadlineOptions,
} from './redis-deadline.options.js';
import { RedisDeadlineReader } from './redis-deadline.reader.js';
import { RedisDeadlineStore } from './redis-deadline.store.js';
import { BACKGROUND_DEADLINE_SCRIPTS, REQUEST_DEADLINE_SCRIPTS } from './redis-deadline.tokens.js';

/** The name of the cleanup job in `SchedulerRegistry`. */
const DEADLINE_CLEANUP_JOB = 'deadline-cleanup';

/** All providers of `RedisDeadlineModule`. They connect and start nothing, but for the last one. */
export const REDIS_DEADLINE_PROVIDERS: Provider[] = [
  {
    provide: REDIS_DEADLINE_OPTIONS,
    inject: [ModuleRef, { token: CONNECTIONS_TO_SHARE, optional: true }],
    useFactory: resolveOptions,
  },
  { provide: CONNECTION_OPTIONS, useExisting: REDIS_DEADLINE_OPTIONS },
  { provide: DELIVERY_OPTIONS, inject: [REDIS_DEADLINE_OPTIONS], useFactory: deliveryOptions },
  ...SHARED_CONNECTIONS,
  ...CONNECTION_PROVIDERS,
  { provide: DeadlinePartitions, inject: [REDIS_DEADLINE_OPTIONS], useFactory: partitionsOf },
  { provide: Partitions, useExisting: DeadlinePartitions },
  {
    provide: REQUEST_DEADLINE_SCRIPTS,
    useFactory: () => scriptsOn((client) => new DeadlineScripts(client)),
  },
  {
    provide: BACKGROUND_DEADLINE_SCRIPTS,
    inject: [REQUEST_DEADLINE_SCRIPTS, connectionToken('background')],
    useFactory: (scripts: ScriptsOn<DeadlineScripts>, client: Redis) => scripts(client),
  },
  {
    provide: DeadlineEncryption,
    inject: [REDIS_DEADLINE_OPTIONS],
    useFactory: ({ encryption }: ResolvedRedisDeadlineOptions) => encryption,
  },
  {
    provide: CLEANUP_SCHEDULE,
    inject: [REDIS_DEADLINE_OPTIONS],
    useFactory: ({ cron }: ResolvedRedisDeadlineOptions): CleanupSchedule => ({ name: DEADLINE_CLEANUP_JOB, cron }),
  },
  DeadlineSweeper,
  { provide: DueSweeper, useExisting: DeadlineSweeper },
  { provide: DuePoller, inject: [DeadlineSweeper, DeadlinePartitions, PartitionSignals], useFactory: duePoller },
  DeadlineEventProducer,
  { provide: EventProducer, useExisting: DeadlineEventProducer },
  ...CLEANUP_PROVIDERS,
  ...DELIVERY_PROVIDERS,
  RedisDeadlineStore,
  { provide: DeadlineStore, useExisting: RedisDeadlineStore },
  RedisDeadlineEvents,
  { provide: DeadlineEvents, useExisting: RedisDeadlineEvents },
  RedisDeadlineReader,
  { provide: DEADLINE_READER, useExisting: RedisDeadlineReader },
  { provide: MEASURED_DEADLINES, useExisting: RedisDeadlineStore },
  ContentStartLog,
  storeLifecycle({
    foundation: [StoreConnections, LivingInstances],
    // After all that can refuse the start: the log.
    sources: [PartitionSignals, CleanupJob, DuePoller, ContentStartLog],
    listeners: [],
    handling: [EventConsumer, EventBroadcaster],
  }),
];

/** Of the module that holds the options, which is missing where the application imports the bare class. */
async function resolveOptions(
  moduleRef: ModuleRef,
  shared?: ConnectionsToShare,
): Promise<ResolvedRedisDeadlineOptions> {
  const options = await givenOptions<RedisDeadlineModuleOptions>(
    moduleRef,
    REDIS_DEADLINE_MODULE_OPTIONS,
    'RedisDeadlineModule',
  );
  return resolveRedisDeadlineOptions(options, shared?.address);
}

/** No event makes room for another one: as long as there are `maxLength`, DeadlineSweeper fires nothing. */
function deliveryOptions(options: ResolvedRedisDeadlineOptions): DeliveryOptions {
  return { ...options, events: { ...options.events, maxLength: Number.MAX_SAFE_INTEGER } };
}

function partitionsOf({ namespace, partitions }: ResolvedRedisDeadlineOptions): DeadlinePartitions {
  return new DeadlinePartitions(namespace, partitions);
}

function duePoller(
  sweeper: DeadlineSweeper,
  partitions: DeadlinePartitions,
  signals: PartitionSignals,
): DuePoller<DeadlineKeys> {
  const claimIn: DueList<DeadlineKeys>['claimIn'] = (keys, tally, options) =>
    tracedPass('poll', partitions, tally, () => sweeper.claimIn(keys, tally, options));
  return new DuePoller('deadlines', { claimIn }, partitions.all, signals);
}
