import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { FactoryProvider, InjectionToken, Provider, Type } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { givenOptions } from '@nest-session/core/internal';
import type { Redis } from 'ioredis';
import { Cleanup, CLEANUP_SCHEDULE, CleanupJob, type CleanupSchedule, CleanupTurns } from '../cleanup/cleanup.job.js';
import { DueSweeper } from '../cleanup/due.sweeper.js';
import {
  CONSUMER_IDENTITY,
  DELIVERY_OPTIONS,
  DELIVERY_PACE,
  type DeliveryOptions,
  EVENT_RULES,
  eventRules,
  PACE,
  REQUEST_STREAM_SCRIPTS,
} from '../configuration/event-rules.js';
import { addressWith } from '../connection/node-with.js';
import { OutageLog } from '../connection/outage.log.js';
import { PartitionSignals } from '../connection/partition-signals.js';
import type { RedisAddress } from '../connection/redis-address.options.js';
import {
  CONNECTION_OPTIONS,
  type ConnectionOptions,
  CONNECTIONS_TO_SHARE,
  type ConnectionsToShare,
  connectionToken,
  createConnections,
  REDIS_CONNECTIONS,
  type RedisConnections,
} from '../connection/redis-connections.js';
import { RequestConnection } from '../connection/request.connection.js';
import { ConsumerGroupMember } from '../delivery/consumer-group-member.js';
import { EventLoader, EventProducer } from '../delivery/event-producer.js';
import { EventBroadcaster } from '../delivery/event.broadcaster.js';
import { EventConsumer } from '../delivery/event.consumer.js';
import { EventTrimmer } from '../delivery/event.trimmer.js';
import { GroupLagReader } from '../delivery/group-states.js';
import { UnreadEventReader } from '../delivery/partition-turns.js';
import { LivingInstances } from '../namespace/living-instances.js';
import { StoreConnections } from '../namespace/store-connections.js';
import { Partitions } from '../partitions/partitions.js';
import { scriptsOn } from '../scripts/define-scripts.js';
import { type ConsumerIdentity, EventStreamScripts } from '../scripts/event-stream.scripts.js';
import { BackgroundLimiter } from '../timing/background.limiter.js';
import { type Service, type ServicesOfStore, StoreLifecycle } from './store.lifecycle.js';

/** What one module that keeps entries in Redis has of its own. */
interface StoreParts<Given> {
  /** The name of the module, and the token of what an application has given it. */
  readonly module: string;
  readonly given: InjectionToken;
  /** The token of its options, which are DeliveryOptions, and what makes them. */
  readonly options: symbol;
  readonly resolve: (given: Given | undefined, shared?: RedisAddress) => ConnectionOptions & { readonly cron: string };
  /** Whether it uses the connections of the module of sessions where it has no address of its own. */
  readonly usesShared: boolean;
  readonly partitions: Type<Partitions> | undefined;
  readonly producer: Type<EventProducer>;
  readonly sweeper: { readonly useExisting: InjectionToken } | { readonly useValue: DueSweeper };
  readonly cleanupJob: string;
}

const CONNECTION_NAMES = ['request', 'writes', 'background', 'subscriber', 'notifications', 'signals'] as const;
const BACKGROUND = connectionToken('background');

/** What every module provides that keeps entries in Redis and delivers them. They connect and start nothing. */
export function storeProviders<Given>(parts: StoreParts<Given>): Provider[] {
  const { module, given, options, resolve, usesShared, partitions, producer, sweeper, cleanupJob } = parts;
  const shared = usesShared ? [{ token: CONNECTIONS_TO_SHARE, optional: true }] : [];
  return [
    {
      provide: options,
      inject: [ModuleRef, ...shared],
      useFactory: async (modules: ModuleRef, others?: ConnectionsToShare) =>
        resolve(await givenOptions<Given>(modules, given, module), others?.address),
    },
    { provide: CONNECTION_OPTIONS, useExisting: options },
    { provide: DELIVERY_OPTIONS, useExisting: options },
    {
      provide: REDIS_CONNECTIONS,
      inject: [options, OutageLog, ...shared],
      useFactory: (
        resolved: ConnectionOptions & { readonly isShared?: boolean },
        log: OutageLog,
        others?: ConnectionsToShare,
      ) => createConnections(resolved, log, resolved.isShared ? others?.connections : undefined),
    },
    ...CONNECTION_NAMES.map((name) => ({
      provide: connectionToken(name),
      inject: [REDIS_CONNECTIONS],
      useFactory: (connections: RedisConnections) => connections[name],
    })),
    ...(partitions ? [{ provide: Partitions, useExisting: partitions }] : []),
    producer,
    { provide: EventProducer, useExisting: producer },
    { provide: DueSweeper, ...sweeper },
    {
      provide: CLEANUP_SCHEDULE,
      inject: [options],
      useFactory: ({ cron }: { readonly cron: string }): CleanupSchedule => ({ name: cleanupJob, cron }),
    },
    ...PROVIDERS,
  ];
}

const PROVIDERS: Provider[] = [
  OutageLog,
  RequestConnection,
  StoreConnections,
  PartitionSignals,
  CleanupTurns,
  Cleanup,
  CleanupJob,
  { provide: DELIVERY_PACE, useValue: PACE },
  { provide: EVENT_RULES, inject: [DELIVERY_OPTIONS, DELIVERY_PACE, Partitions], useFactory: eventRules },
  { provide: CONSUMER_IDENTITY, inject: [DELIVERY_OPTIONS], useFactory: consumerIdentity },
  {
    provide: LivingInstances,
    inject: [RequestConnection, Partitions, CONSUMER_IDENTITY, BACKGROUND],
    useFactory: (requests: RequestConnection, partitions: Partitions, own: ConsumerIdentity, background: Redis) =>
      new LivingInstances(requests, partitions, own.consumer, { run: (command) => command(background) }),
  },
  {
    provide: BackgroundLimiter,
    inject: [BACKGROUND],
    useFactory: (background: Redis) => new BackgroundLimiter(undefined, (key) => addressWith(background, key)),
  },
  {
    provide: REQUEST_STREAM_SCRIPTS,
    inject: [EventProducer],
    useFactory: ({ kind }: EventProducer) => scriptsOn((client) => new EventStreamScripts(client, kind)),
  },
  {
    provide: EventStreamScripts,
    inject: [BACKGROUND, EventProducer],
    useFactory: (client: Redis, { kind }: EventProducer) => new EventStreamScripts(client, kind),
  },
  UnreadEventReader,
  ConsumerGroupMember,
  EventLoader,
  EventConsumer,
  EventBroadcaster,
  EventTrimmer,
  GroupLagReader,
];

function consumerIdentity({ events }: DeliveryOptions): ConsumerIdentity {
  return { group: events.group, consumer: `${hostname()}:${process.pid}:${randomUUID()}` };
}

interface OwnServices {
  /** What can refuse the start beside the connections. */
  readonly checks?: readonly Service[];
  /** What finds work, before the cleanup and after it. */
  readonly before?: readonly Service[];
  readonly after?: readonly Service[];
  /** It tells of the start when nothing can refuse that any more. */
  readonly log: Service;
  readonly listeners?: readonly Service[];
}

export function storeServices({
  checks = [],
  before = [],
  after = [],
  log,
  listeners = [],
}: OwnServices): ServicesOfStore {
  return {
    foundation: [StoreConnections, ...checks, LivingInstances],
    sources: [...before, PartitionSignals, CleanupJob, ...after, log],
    listeners,
    handling: [EventConsumer, EventBroadcaster],
  };
}

export function storeLifecycle<Options extends ConnectionOptions>(
  servicesOf: (options: Options) => ServicesOfStore,
): FactoryProvider<StoreLifecycle> {
  return {
    provide: StoreLifecycle,
    inject: [ModuleRef, REDIS_CONNECTIONS, CONNECTION_OPTIONS],
    useFactory: (providers: ModuleRef, connections: RedisConnections, options: Options) =>
      new StoreLifecycle(providers, connections, servicesOf(options), options.commandTimeout),
  };
}
