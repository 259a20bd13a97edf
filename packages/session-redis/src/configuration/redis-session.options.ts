import { AttributeSerializer, type Duration } from '@nest-session/core';
import { isSerializer, OptionReader } from '@nest-session/core/internal';
import { CronTime, validateCronExpression } from 'cron';
import {
  ATTEMPTS,
  isOfCluster,
  namespaceProblem,
  readAddress,
  type RedisAddress,
  type RedisAddressOptions,
} from '@nest-session/redis-events/internal';
import type { SessionEncryption } from '../encryption/session-encryption.js';
import type { SessionTimer } from '../timers/session-timer.js';
import { type EncryptionOptions, readEncryption } from './encryption.options.js';
import { type ExpirationStoreName, readExpirations, type ResolvedExpirations } from './expirations.options.js';

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
  /** How session events reach the handlers of this process. */
  events?: {
    /**
     * Name of the group. One instance of the group handles each event. A new group begins with the oldest event that is
     * still kept. @default 'default'
     */
    group?: string;
    /**
     * Whether this process handles events of its group. Handlers with `broadcast: true` are called in any case.
     * @default true
     */
    consume?: boolean;
    /**
     * How long an event is kept for groups that have not handled it, and with it the data of an ended session. At least
     * `grace`. Where no handler wants the end of a session, its data goes at once. @default '1h'
     */
    retention?: Duration;
    /**
     * Largest number of events that are kept, handled or not. The oldest `created` events go first, then the oldest of
     * the others. @default 1000000
     */
    maxLength?: number;
    /**
     * How long the events of a dead instance wait until another instance takes them over. A living instance renews its
     * leases, so a handler may take longer. 1s to 1d. @default '30s'
     */
    lease?: Duration;
    /**
     * Number of attempts before an event becomes a dead letter, 1 to 1000. The back-off is 1 s after the first attempt
     * and doubles each time, up to 5 minutes. An event over which five instances ended becomes one as well. @default 10
     */
    attempts?: number;
    /**
     * Dead letters. All of them take at most 64 MiB, about. Beyond it, the oldest go of that handler in that group
     * whose dead letters take most room. What goes unseen is logged, and counted in `SessionEventGroups.list()`.
     */
    deadLetters?: {
      /** How long a dead letter is kept. At least 1m. @default '30d' */
      retention?: Duration;
    };
    /**
     * How long handlers may continue when the application shuts down. Another instance then handles the events that
     * they have not finished, from the start. At most 1d. @default '10s'
     */
    shutdownTimeout?: Duration;
    /** Number of events that one instance handles at a time, 1 to 10000. @default 32 */
    concurrency?: number;
  };
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
  readonly events: {
    readonly group: string;
    readonly consume: boolean;
    readonly retention: number;
    readonly maxLength: number;
    readonly lease: number;
    readonly attempts: number;
    readonly deadLetters: { readonly retention: number };
    readonly shutdownTimeout: number;
    readonly concurrency: number;
  };
  readonly serializer: AttributeSerializer | undefined;
  readonly encryption: SessionEncryption;
  readonly requireAtStart: boolean;
}

const SECOND = 1000;
// A process waits for these itself, and Node.js fires a timer of more than 24 days at once.
const LONGEST_WAIT = 86_400 * SECOND;
/** What to do instead of options of ioredis and of other stores. */
export const IN_URL = 'write it into `url`, as in redis://user:password@host:6379/0';
const MOST_PARTITIONS = 1024;

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

/** The option `partitions`. */
export function readPartitions(reader: OptionReader, isOnCluster: boolean): number {
  return reader.integer('partitions', isOnCluster ? 64 : 1, rangeOfPartitions(isOnCluster));
}

/** How many partitions there may be. */
export function rangeOfPartitions(isOnCluster: boolean): { readonly atLeast: number; readonly atMost: number } {
  return { atLeast: isOnCluster ? 2 : 1, atMost: MOST_PARTITIONS };
}

/**
 * The option `events`. `shownGrace`: what a problem calls the grace period. `usual`: the default of `retention` in
 * milliseconds.
 */
export function readEvents(
  reader: OptionReader,
  grace: number,
  { shownGrace = '`grace`', usual = Math.max(3_600_000, grace) } = {},
): ResolvedRedisSessionOptions['events'] {
  const groupProblem = (group: string) => (group.trim() === '' ? 'must not be empty' : undefined);
  // It reads as 0 if it is refused.
  const retention = reader.duration('retention', `${usual}ms`, { atLeast: SECOND });
  if (retention > 0 && retention < grace)
    reader.problem(`Option \`events.retention\` must be at least as long as ${shownGrace}.`);
  const letters = reader.section('deadLetters');
  const deadLetters = { retention: letters.duration('retention', '30d', { atLeast: 60 * SECOND }) };
  letters.finish();
  const events = {
    group: reader.text('group', 'default', groupProblem),
    consume: reader.boolean('consume', true),
    retention,
    maxLength: reader.integer('maxLength', 1_000_000, { atLeast: 1, atMost: Number.MAX_SAFE_INTEGER }),
    lease: reader.duration('lease', '30s', { atLeast: SECOND, atMost: LONGEST_WAIT }),
    attempts: reader.integer('attempts', ATTEMPTS, { atLeast: 1, atMost: 1000 }),
    deadLetters,
    shutdownTimeout: reader.duration('shutdownTimeout', '10s', { atMost: LONGEST_WAIT }),
    concurrency: reader.integer('concurrency', 32, { atLeast: 1, atMost: 10_000 }),
  };
  reader.finish();
  return events;
}

export function readCommandTimeout(reader: OptionReader): number {
  return reader.duration('commandTimeout', '1s', { atLeast: 10, atMost: LONGEST_WAIT });
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
