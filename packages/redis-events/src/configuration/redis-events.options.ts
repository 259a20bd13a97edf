import { ConfigurableModuleBuilder } from '@nestjs/common';
import { type AttributeSerializer, type Duration, JsonAttributeSerializer } from '@nest-session/core';
import { explainInjection, isSerializer, OptionReader } from '@nest-session/core/internal';
import {
  isOfCluster,
  readAddressOrShare,
  type RedisAddress,
  type RedisAddressOptions,
} from '../connection/redis-address.options.js';
import { type EventDeliveryOptions, IN_URL, readCommandTimeout, readEvents, readPartitions } from './event-rules.js';
import { namespaceProblem } from '../partitions/namespace.js';

/** Options of `RedisEventsModule.forRoot()`. */
export interface RedisEventsModuleOptions extends RedisAddressOptions {
  /** Prefix of every key, which nothing else has. Without `{ } * [ ] ? \`. @default 'nest:events' */
  namespace?: string;
  /** 1 to 1024, each in one slot of a Cluster. Recorded at the first start. @default 1; 64 on Redis Cluster */
  partitions?: number;
  /** How long a call waits for Redis at most, a reconnection included: 10ms to 1d. @default '1s' */
  commandTimeout?: Duration;
  /** How events reach the handlers of this process. */
  events?: EventDeliveryOptions;
  /** Turns data into text and back. @default JSON */
  serializer?: AttributeSerializer;
  /** Whether the application refuses to start without Redis. @default false: it starts, and logs the outage once */
  requireAtStart?: boolean;
}

/** Times are milliseconds. */
export type ResolvedRedisEventsOptions = ReturnType<typeof resolveRedisEventsOptions>;

export const REDIS_EVENTS_OPTIONS = Symbol('REDIS_EVENTS_OPTIONS');

// Milliseconds. For so long an instance may be without a connection before it misses what all groups have handled.
const GRACE = 300_000;

export function resolveRedisEventsOptions(options: RedisEventsModuleOptions = {}, shared?: RedisAddress) {
  const reader = new OptionReader('RedisEventsModule', options);
  const defaults = { what: 'events', namespace: 'nest:events', grace: GRACE, shownGrace: '5m' } as const;
  const resolved = readStore(reader, options, defaults, shared);
  reader.finish(OF_URL);
  return Object.freeze(resolved);
}

interface StoreDefaults {
  readonly what: 'events' | 'deadlines';
  readonly namespace: string;
  /** Milliseconds, and the same as a duration. */
  readonly grace: number;
  readonly shownGrace: string;
}

const RETENTION = 7 * 86_400_000;
const EVERY_MINUTE = '0 * * * * *';
export const OF_URL: Readonly<Record<string, string>> = { host: IN_URL, port: IN_URL, db: IN_URL };

/** The options that every module has which keeps entries beside sessions, and what these do not let choose. */
export function readStore(
  reader: OptionReader,
  options: RedisEventsModuleOptions,
  { what, namespace, grace, shownGrace }: StoreDefaults,
  shared: RedisAddress | undefined,
) {
  const address = readAddressOrShare(reader, options, what, shared);
  return {
    ...address,
    namespace: reader.text('namespace', namespace, namespaceProblem),
    partitions: readPartitions(reader, isOfCluster(address.connection)),
    grace,
    cron: EVERY_MINUTE,
    commandTimeout: readCommandTimeout(reader),
    replicas: 0,
    events: readEvents(reader.section('events'), grace, { shownGrace, usual: RETENTION }),
    serializer: reader.value('serializer', isSerializer, 'an AttributeSerializer') ?? new JsonAttributeSerializer(),
    requireAtStart: reader.boolean('requireAtStart', false),
  };
}

/** Implement it in a class that you pass to `forRootAsync()` as `useClass` or `useExisting`. */
export interface RedisEventsOptionsFactory {
  /** Returns the options, or a promise of them. Called once, at start. */
  createRedisEventsOptions(): RedisEventsModuleOptions | Promise<RedisEventsModuleOptions>;
}

export const {
  ConfigurableModuleClass: RedisEventsModuleDefinition,
  MODULE_OPTIONS_TOKEN: REDIS_EVENTS_MODULE_OPTIONS,
} = new ConfigurableModuleBuilder<RedisEventsModuleOptions>({ moduleName: 'RedisEvents' })
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createRedisEventsOptions')
  .setExtras({}, (definition) => ({ ...explainInjection('RedisEventsModule', definition), global: true }))
  .build();
