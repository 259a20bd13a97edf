import type { Provider } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { givenOptions } from '@nest-session/core/internal';
import { CLEANUP_PROVIDERS, CLEANUP_SCHEDULE, type CleanupSchedule } from '../cleanup/cleanup.providers.js';
import { DueSweeper } from '../cleanup/due.sweeper.js';
import { CONNECTION_PROVIDERS, SHARED_CONNECTIONS } from '../connection/connection.providers.js';
import { CONNECTION_OPTIONS, CONNECTIONS_TO_SHARE, type ConnectionsToShare } from '../connection/redis-connections.js';
import { DELIVERY_PROVIDERS } from '../delivery/delivery.providers.js';
import { DELIVERY_OPTIONS } from '../delivery/delivery.tokens.js';
import { EventProducer } from '../delivery/event-producer.js';
import { ContentStartLog } from '../lifecycle/content-start.log.js';
import { keyEventListener } from '../notifications/key-event-listener.js';
import { KeyspaceNotificationListener } from '../notifications/keyspace-notification.listener.js';
import { PartitionKeys } from '../partitions/partition-keys.js';
import { type NamespaceOwner, Partitions } from '../partitions/partitions.js';
import { RedisEventGroups } from './redis-event-groups.js';
import { RedisEventProducer } from './redis-event-producer.js';
import { RedisEvents } from './redis-events.js';
import {
  REDIS_EVENTS_MODULE_OPTIONS,
  REDIS_EVENTS_OPTIONS,
  type RedisEventsModuleOptions,
  type ResolvedRedisEventsOptions,
  resolveRedisEventsOptions,
} from '../configuration/redis-events.options.js';

const OF_EVENTS: NamespaceOwner = { holds: 'events', module: 'RedisEventsModule' };

const CLEANUP: CleanupSchedule = { name: 'redis-event-cleanup', cron: '0 * * * * *' };

/** Nothing becomes due: events are recorded by calls. */
const NOTHING_DUE: DueSweeper = { what: 'events', sweep: () => Promise.resolve() };

/** All providers of `RedisEventsModule`. They connect and start nothing. */
export const REDIS_EVENTS_PROVIDERS: Provider[] = [
  {
    provide: REDIS_EVENTS_OPTIONS,
    inject: [ModuleRef, { token: CONNECTIONS_TO_SHARE, optional: true }],
    useFactory: resolveOptions,
  },
  { provide: CONNECTION_OPTIONS, useExisting: REDIS_EVENTS_OPTIONS },
  { provide: DELIVERY_OPTIONS, useExisting: REDIS_EVENTS_OPTIONS },
  ...SHARED_CONNECTIONS,
  ...CONNECTION_PROVIDERS,
  keyEventListener(KeyspaceNotificationListener, 'notifications'),
  { provide: Partitions, inject: [REDIS_EVENTS_OPTIONS], useFactory: partitionsOf },
  { provide: CLEANUP_SCHEDULE, useValue: CLEANUP },
  { provide: DueSweeper, useValue: NOTHING_DUE },
  RedisEventProducer,
  { provide: EventProducer, useExisting: RedisEventProducer },
  ...CLEANUP_PROVIDERS,
  ...DELIVERY_PROVIDERS,
  ContentStartLog,
  RedisEvents,
  RedisEventGroups,
];

async function resolveOptions(moduleRef: ModuleRef, shared?: ConnectionsToShare): Promise<ResolvedRedisEventsOptions> {
  const options = await givenOptions<RedisEventsModuleOptions>(
    moduleRef,
    REDIS_EVENTS_MODULE_OPTIONS,
    'RedisEventsModule',
  );
  return resolveRedisEventsOptions(options, shared?.address);
}

function partitionsOf({ namespace, partitions }: ResolvedRedisEventsOptions): Partitions {
  return new Partitions(namespace, partitions, PartitionKeys, OF_EVENTS);
}
