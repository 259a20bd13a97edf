import { ConfigurableModuleBuilder } from '@nestjs/common';
import { type AttributeSerializer, type Duration, JsonAttributeSerializer } from '@nest-session/core';
import { explainInjection, isSerializer, OptionReader } from '@nest-session/core/internal';
import {
  type EventDeliveryOptions,
  IN_URL,
  isOfCluster,
  namespaceProblem,
  readAddressOrShare,
  readCommandTimeout,
  readEvents,
  readPartitions,
  type RedisAddress,
  type RedisAddressOptions,
} from '@nest-session/redis-events/internal';
import { type EncryptionOptions, readEncryption } from '@nest-session/redis/internal';
import { DeadlineEncryption } from './deadline-encryption.js';

/** Scripts by the connection of a call, and those of background work on the one that it has. */
export const REQUEST_DEADLINE_SCRIPTS = Symbol('REQUEST_DEADLINE_SCRIPTS');
export const BACKGROUND_DEADLINE_SCRIPTS = Symbol('BACKGROUND_DEADLINE_SCRIPTS');

/** Options of `RedisDeadlineModule.forRoot()`. */
export interface RedisDeadlineModuleOptions extends RedisAddressOptions {
  /** Prefix of every key, which no sessions have. Without `{ } * [ ] ? \`. @default 'nest:deadlines' */
  namespace?: string;
  /**
   * Number of partitions of the namespace, 1 to 1024, as that of sessions. Redis records it at the first start.
   * @default 1; 64 on Redis Cluster
   */
  partitions?: number;
  /** How long a call waits for Redis at most, a reconnection included: 10ms to 1d. @default '1s' */
  commandTimeout?: Duration;
  /**
   * How deadlines that have come reach the handlers of this process: as the events of sessions do. The default of
   * `retention` is `'7d'`. While `maxLength` events wait for their groups, later deadlines go on waiting, and nothing
   * is lost.
   */
  events?: EventDeliveryOptions;
  /** Turns data into text and back. @default JSON */
  serializer?: AttributeSerializer;
  /** Encrypts the data in Redis with AES-256-GCM. Keys of deadlines are not encrypted. @default none */
  encryption?: EncryptionOptions;
  /** Whether the application refuses to start without Redis. @default false: it starts, and logs the outage once */
  requireAtStart?: boolean;
}

export const MODULE = 'RedisDeadlineModule';

/** With what deadlines do not let choose. Times are milliseconds. */
export type ResolvedRedisDeadlineOptions = ReturnType<typeof resolveRedisDeadlineOptions>;

export const REDIS_DEADLINE_OPTIONS = Symbol('REDIS_DEADLINE_OPTIONS');

// Milliseconds. Short, because what is handled counts among the `maxLength` events until it is trimmed.
const GRACE = 60_000;
const RETENTION = 7 * 86_400_000;
const EVERY_MINUTE = '0 * * * * *';

/** `shared`: the address of `RedisSessionModule`. @throws InvalidSessionOptionsError that names all problems at once */
export function resolveRedisDeadlineOptions(options: RedisDeadlineModuleOptions = {}, shared?: RedisAddress) {
  const reader = new OptionReader(MODULE, options);
  const address = readAddressOrShare(reader, options, 'deadlines', shared);
  const namespace = reader.text('namespace', 'nest:deadlines', namespaceProblem);
  const resolved = {
    ...address,
    namespace,
    partitions: readPartitions(reader, isOfCluster(address.connection)),
    grace: GRACE,
    cron: EVERY_MINUTE,
    commandTimeout: readCommandTimeout(reader),
    replicas: 0,
    events: readEvents(reader.section('events'), GRACE, { shownGrace: '1m', usual: RETENTION }),
    serializer: reader.value('serializer', isSerializer, 'an AttributeSerializer') ?? new JsonAttributeSerializer(),
    encryption: new DeadlineEncryption(
      readEncryption(reader.section('encryption'), options.encryption !== undefined, { kind: 'deadline', namespace })
        .rules,
    ),
    requireAtStart: reader.boolean('requireAtStart', false),
  };
  reader.finish({ host: IN_URL, port: IN_URL, db: IN_URL, maxDataSize: OF_DEADLINES, maxScheduled: OF_DEADLINES });
  return Object.freeze(resolved);
}

const OF_DEADLINES = 'it is an option of DeadlineModule.forRoot()';

/** Implement it in a class that you pass to `forRootAsync()` as `useClass` or `useExisting`. */
export interface RedisDeadlineOptionsFactory {
  /** Returns the options, or a promise of them. Called once, at start. */
  createRedisDeadlineOptions(): RedisDeadlineModuleOptions | Promise<RedisDeadlineModuleOptions>;
}

export const {
  ConfigurableModuleClass: RedisDeadlineModuleDefinition,
  MODULE_OPTIONS_TOKEN: REDIS_DEADLINE_MODULE_OPTIONS,
} = new ConfigurableModuleBuilder<RedisDeadlineModuleOptions>({ moduleName: 'RedisDeadline' })
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createRedisDeadlineOptions')
  .setExtras({}, (definition) => ({ ...explainInjection(MODULE, definition), global: true }))
  .build();
