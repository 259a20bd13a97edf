import { AttributeSerializer, type Duration } from '@nest-session/core';
import { isSerializer, OptionReader } from '@nest-session/core/internal';
import {
  type EventDeliveryOptions,
  IN_URL,
  isOfCluster,
  namespaceProblem,
  readAddress,
  readCommandTimeout,
  readEvents,
  readPartitions,
  type RedisAddress,
  type RedisAddressOptions,
  type ResolvedEventOptions,
} from '@nest-session/redis-events/internal';
import { CronTime, validateCronExpression } from 'cron';
import { type EncryptionOptions, readEncryption } from './encryption.options.js';
import type { SessionEncryption } from '../encryption/session-encryption.js';
import { type ExpirationStoreName, readExpirations, type ResolvedExpirations } from './expirations.options.js';
import type { SessionTimer } from '../timers/session-timer.js';

/** Options of `RedisSessionModule.forRoot()`. */
export interface RedisSessionModuleOptions extends RedisAddressOptions {
  /**
   * Prefix of every key. Applications with different namespaces share nothing. Without `{ } * [ ] ? \`.
   * @default 'nest:session'
   */
  namespace?: string;
  /**
   * Number of partitions of the namespace, 1 to 1024. The keys of a partition are in one slot of Redis Cluster. Each
   * partition costs background work. Redis records the number at the first start. On a Cluster at least 2.
   * To change it, see the page "Scaling" of the documentation. @default 1; 64 on Redis Cluster
   */
  partitions?: number;
  /**
   * Grace period: how long the session hash outlives a session whose end nobody has recorded, and how long the data and
   * the event of a recorded end are kept at least. An expiry is noticed up to 60 s late, so the longest outage of the
   * whole application that loses no data is `grace` - 60 s. At least 1s; below 2m the log has a warning. @default '5m'
   */
  grace?: Duration;
  /** How the job `session-cleanup` finds sessions that have expired. */
  cleanup?: {
    /**
     * Cron expression, with seconds, of the job `session-cleanup`, which looks for ended sessions.
     * @default '0 * * * * *'
     */
    cron?: string;
    /** Sessions per call of a script, 1 to 1000: a call with 50 blocks Redis for about 0.5 ms. @default 50 */
    batchSize?: number;
  };
  /**
   * Where the scripts note when a session ends. `'buckets'`: in a set for each minute, which the cleanup job sweeps.
   * `'sorted-set'`: in one sorted set per partition by the millisecond, which every instance polls when the next
   * session is due: ends are known within 250 ms without key events. Instances with either may run at once. See
   * the page "How sessions end" of the documentation.
   *
   * Or a timer, a server outside of Redis that tells when a session may have ended, beside the buckets. See
   * the page "How sessions end" of the documentation.
   * @default 'buckets'
   */
  expirations?: ExpirationStoreName | SessionTimer;
  /**
   * `'auto'`: key events of Redis make some expiries known before the cleanup job finds them, where Redis allows that.
   * `'off'`: nothing asks Redis for key events. @default 'auto'
   */
  notifications?: 'auto' | 'off';
  /** How long a request waits for Redis at most, a reconnection included: 10ms to 1d. @default '1s' */
  commandTimeout?: Duration;
  /**
   * How many replicas must have each change of a request before it succeeds, 0 to 16. With fewer, after half of
   * `commandTimeout`, the request fails as in an outage, and the change stands on the primary. A failover then loses
   * less; it may still lose a change. @default 0
   */
  replicas?: number;
  /**
   * How session events reach the handlers of this process. The data of an ended session are kept as long as its event;
   * where no handler wants the end of a session, they go at once. The oldest `created` events make room first.
   */
  events?: EventDeliveryOptions;
  /** Turns attributes into text and back. @default JSON */
  serializer?: AttributeSerializer;
  /** Encrypts the values of attributes in Redis with AES-256-GCM. @default none: values are stored as they are */
  encryption?: EncryptionOptions;
  /** Whether the application refuses to start without Redis. @default false: it starts, and logs the outage once */
  requireAtStart?: boolean;
}

export interface ResolvedRedisSessionOptions {
  readonly connection: RedisAddress;
  readonly namespace: string;
  readonly partitions: number;
  /** Milliseconds, like all times here. */
  readonly grace: number;
  readonly cron: string;
  readonly batchSize: number;
  readonly notifications: 'auto' | 'off';
  readonly expirations: ResolvedExpirations;
  readonly commandTimeout: number;
  readonly replicas: number;
  readonly events: ResolvedEventOptions;
  readonly serializer: AttributeSerializer | undefined;
  readonly encryption: SessionEncryption;
  readonly requireAtStart: boolean;
}

const SECOND = 1000;

/** Checks the options and fills in the defaults. @throws InvalidSessionOptionsError naming all problems at once */
export function resolveRedisSessionOptions(
  options: RedisSessionModuleOptions = {},
  problemOf = namespaceProblem,
): ResolvedRedisSessionOptions {
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
    notifications: reader.oneOf('notifications', ['auto', 'off'], 'auto'),
    expirations: readExpirations(reader, options.expirations),
    commandTimeout: readCommandTimeout(reader),
    replicas: readReplicas(reader),
    events,
    serializer: reader.value('serializer', isSerializer, 'an AttributeSerializer'),
    encryption: readEncryption(reader.section('encryption'), options.encryption !== undefined, {
      kind: 'session',
      namespace,
    }),
    requireAtStart: reader.boolean('requireAtStart', false),
  };
  reader.finish({ host: IN_URL, port: IN_URL, db: IN_URL });
  return Object.freeze(resolved);
}

/** The option `cleanup`. */
export function readCleanup(reader: OptionReader): Pick<ResolvedRedisSessionOptions, 'cron' | 'batchSize'> {
  const cron = reader.text('cron', '0 * * * * *', cronProblem);
  const batchSize = reader.integer('batchSize', 50, { atLeast: 1, atMost: 1000 });
  reader.finish();
  return { cron, batchSize };
}

/** The option `replicas`. */
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
