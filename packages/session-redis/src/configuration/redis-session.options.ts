import { ConfigurableModuleBuilder } from '@nestjs/common';
import { AttributeSerializer, type Duration } from '@nest-session/core';
import { explainInjection, isSerializer, OptionReader } from '@nest-session/core/internal';
import { CronTime, validateCronExpression } from 'cron';
import {
  type EventDeliveryOptions,
  isOfCluster,
  namespaceProblem,
  OF_URL,
  readAddress,
  readCommandTimeout,
  readEvents,
  readPartitions,
  type RedisAddressOptions,
} from '@nest-session/redis-events/internal';
import type { SessionTimer } from '../timers/session-timer.js';
import { type EncryptionOptions, readEncryption } from './encryption.options.js';
import { type ExpirationStoreName, readExpirations } from './expirations.options.js';

/** Options of `RedisSessionModule.forRoot()`. */
export interface RedisSessionModuleOptions extends RedisAddressOptions {
  /** Prefix of every key, without `{ } * [ ] ? \`. Others share nothing with it. @default 'nest:session' */
  namespace?: string;
  /** 1 to 1024 partitions, on a Cluster at least 2: see the page "Scaling". @default 1; 64 on Redis Cluster */
  partitions?: number;
  /**
   * How long the data of a session outlive an end that nobody has recorded, and those of a recorded one at least. The
   * longest outage of the whole application that loses no data is `grace` - 60 s. At least 1s. @default '5m'
   */
  grace?: Duration;
  /** How the job `session-cleanup` finds sessions that have expired. */
  cleanup?: {
    /** Cron expression, with seconds. @default '0 * * * * *' */
    cron?: string;
    /** Sessions per call of a script, 1 to 1000: a call with 50 blocks Redis for about 0.5 ms. @default 50 */
    batchSize?: number;
  };
  /**
   * Where ends are noted. `'buckets'`: in a set for each minute, which the cleanup job sweeps. `'sorted-set'`: in one
   * that every instance polls: known within 250 ms without key events. Instances with either may run at once. Or a
   * timer, a server outside of Redis, beside the buckets. See the page "How sessions end". @default 'buckets'
   */
  expirations?: ExpirationStoreName | SessionTimer;
  /** `'auto'`: key events of Redis make some expiries known sooner, where it allows that. @default 'auto' */
  notifications?: 'auto' | 'off';
  /** How long a request waits for Redis at most, a reconnection included: 10ms to 1d. @default '1s' */
  commandTimeout?: Duration;
  /** Replicas that must have each change before it succeeds, 0 to 16. Else it stays on the primary. @default 0 */
  replicas?: number;
  /** How session events reach the handlers of this process. The oldest `created` events make room first. */
  events?: EventDeliveryOptions;
  /** Turns attributes into text and back. @default JSON */
  serializer?: AttributeSerializer;
  /** Encrypts the values of attributes in Redis with AES-256-GCM. @default none: values are stored as they are */
  encryption?: EncryptionOptions;
  /** Whether the application refuses to start without Redis. @default false: it starts, and logs the outage once */
  requireAtStart?: boolean;
}

/** Times are milliseconds. */
export type ResolvedRedisSessionOptions = ReturnType<typeof resolveRedisSessionOptions>;

const SECOND = 1000;

export function resolveRedisSessionOptions(options: RedisSessionModuleOptions = {}, problemOf = namespaceProblem) {
  const reader = new OptionReader('RedisSessionModule', options);
  const connection = readAddress(reader, options);
  const namespace = reader.text('namespace', 'nest:session', problemOf);
  const partitions = readPartitions(reader, isOfCluster(connection));
  const grace = reader.duration('grace', '5m', { atLeast: SECOND });
  const cleanup = readCleanup(reader.section('cleanup'));
  const events = readEvents(reader.section('events'), grace);
  const resolved = {
    connection,
    namespace,
    partitions,
    grace,
    ...cleanup,
    events,
    notifications: reader.oneOf('notifications', ['auto', 'off'], 'auto'),
    expirations: readExpirations(reader, options.expirations),
    commandTimeout: readCommandTimeout(reader),
    replicas: readReplicas(reader),
    serializer: reader.value('serializer', isSerializer, 'an AttributeSerializer'),
    encryption: readEncryption(reader.section('encryption'), options.encryption !== undefined, {
      kind: 'session',
      namespace,
    }),
    requireAtStart: reader.boolean('requireAtStart', false),
  };
  reader.finish(OF_URL);
  return Object.freeze(resolved);
}

export function readCleanup(reader: OptionReader) {
  const cron = reader.text('cron', '0 * * * * *', cronProblem);
  const batchSize = reader.integer('batchSize', 50, { atLeast: 1, atMost: 1000 });
  reader.finish();
  return { cron, batchSize };
}

export function readReplicas(reader: OptionReader): number {
  return reader.integer('replicas', 0, { atLeast: 0, atMost: 16 });
}

function cronProblem(cron: string): string | undefined {
  if (!validateCronExpression(cron).valid) return 'is not a cron expression';
  try {
    // In any zone, also where the machine has none.
    new CronTime(cron, 'UTC').sendAt();
    return undefined;
  } catch {
    return 'names a time that never comes, such as the 30th of February';
  }
}

/** Implement it in a class that you pass to `forRootAsync()` as `useClass` or `useExisting`. */
export interface RedisSessionOptionsFactory {
  /** Returns the options, or a promise of them. Called once, at start. */
  createRedisSessionOptions(): RedisSessionModuleOptions | Promise<RedisSessionModuleOptions>;
}

export const {
  ConfigurableModuleClass: RedisSessionModuleDefinition,
  MODULE_OPTIONS_TOKEN: REDIS_SESSION_MODULE_OPTIONS,
} = new ConfigurableModuleBuilder<RedisSessionModuleOptions>({ moduleName: 'RedisSession' })
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createRedisSessionOptions')
  .setExtras({}, (definition) => ({ ...explainInjection('RedisSessionModule', definition), global: true }))
  .build();
