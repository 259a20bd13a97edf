import { AttributeSerializer, type Duration, JsonAttributeSerializer } from '@nest-session/core';
import { OptionReader } from '@nest-session/core/store';
import { validateCronExpression } from 'cron';
import type { Redis, RedisOptions } from 'ioredis';
import { namespaceProblem } from '../keys/session-keys.js';

/** Options of `RedisSessionModule.forRoot()`. */
export interface RedisSessionModuleOptions {
  /** Where Redis is. Not together with `client`. @default 'redis://localhost:6379' */
  url?: string;
  /**
   * A client of yours, for its address, credentials and TLS: the library works on duplicates of it with options of
   * their own, and neither changes nor closes yours.
   */
  client?: Redis;
  /** What every key begins with; applications with different namespaces do not see each other. @default 'nest:session' */
  namespace?: string;
  /**
   * Into how many partitions the sessions of the namespace fall, 1 to 1024. Each has its keys in one slot of Redis
   * Cluster, and needs work of its own. The number is recorded in Redis at the first start and stays. @default 1
   */
  partitions?: number;
  /**
   * By how much a session's data outlives the session. An expiry is noticed up to 60 s late, so the longest outage of
   * the whole application that loses no data is `grace` - 60 s. At least 1s; below 2m a warning is logged.
   * @default '5m'
   */
  grace?: Duration;
  /** How the job `session-cleanup` finds sessions that have expired. */
  cleanup?: {
    /** When the job `session-cleanup` looks for sessions that are over. @default '0 * * * * *' */
    cron?: string;
    /** Sessions per call, 1 to 1000: a call of 100 keeps Redis busy for about a millisecond. @default 100 */
    batchSize?: number;
  };
  /**
   * `'auto'`: expiries are noticed within about a second where Redis can be made to announce them; `'off'`: by the
   * job alone. @default 'auto'
   */
  notifications?: 'auto' | 'off';
  /** The longest a request waits for Redis, for a lost connection to come back included. @default '1s' */
  commandTimeout?: Duration;
  /** How session events reach the handlers of this process. */
  events?: {
    /**
     * Instances with the same group share its events: one of them handles each. A new name hears once more of
     * everything that is still retained. @default 'default'
     */
    group?: string;
    /**
     * Whether this process handles events of its group, if it has handlers for them. Methods with `broadcast: true` are
     * called in any case: nobody else can do their work. @default true
     */
    consume?: boolean;
    /**
     * How long an event is kept for groups that have not handled it, and the data of a session after its end with it; at
     * least the grace. @default '1h'
     */
    retention?: Duration;
    /** How many events are kept at the most, whether they have been handled or not. @default 1000000 */
    maxLength?: number;
    /**
     * How long an instance that has died keeps its events from the others. One that is alive renews its lease: a handler
     * may take longer. @default '30s'
     */
    lease?: Duration;
    /**
     * How often an event is tried in all before it becomes a dead letter. There is a second between the first attempts,
     * then twice as long each time, up to 5 minutes. @default 10
     */
    attempts?: number;
    /**
     * How long the handlers that run when the application ends may go on. What they have not finished then is handled
     * by another instance, all of it. @default '10s'
     */
    shutdownTimeout?: Duration;
    /** Events that one instance handles at a time. @default 32 */
    concurrency?: number;
  };
  /** How attributes become text and back. @default JSON */
  serializer?: AttributeSerializer;
  /** Whether the application refuses to start without Redis. @default false: it starts, and logs that once */
  requireAtStart?: boolean;
}

export interface ResolvedRedisSessionOptions {
  readonly connection: { readonly url: string } | { readonly client: Redis };
  readonly namespace: string;
  readonly partitions: number;
  /** Milliseconds, like all times here. */
  readonly grace: number;
  readonly cron: string;
  readonly batchSize: number;
  readonly notifications: 'auto' | 'off';
  readonly commandTimeout: number;
  readonly events: {
    readonly group: string;
    readonly consume: boolean;
    readonly retention: number;
    readonly maxLength: number;
    readonly lease: number;
    readonly attempts: number;
    readonly shutdownTimeout: number;
    readonly concurrency: number;
  };
  readonly serializer: AttributeSerializer;
  readonly requireAtStart: boolean;
}

const SECOND = 1000;

/** The only way options enter this package. @throws InvalidSessionOptionsError naming all problems at once */
export function resolveRedisSessionOptions(options: RedisSessionModuleOptions = {}): ResolvedRedisSessionOptions {
  const reader = new OptionReader('RedisSessionModule', options);
  const url = reader.text('url', undefined, urlProblem);
  const client = reader.value('client', isClient, 'a Redis client of ioredis');
  if (url !== undefined && client) reader.problem('Give either `url` or `client`, not both.');
  for (const problem of client ? clientProblems(client) : []) reader.problem(problem);
  const namespace = reader.text('namespace', 'nest:session', namespaceProblem);
  const partitions = reader.integer('partitions', 1, { atLeast: 1, atMost: 1024 });
  const grace = reader.duration('grace', '5m', { atLeast: SECOND });
  const cleanup = reader.section('cleanup');
  const cron = cleanup.text('cron', '0 * * * * *', cronProblem);
  const batchSize = cleanup.integer('batchSize', 100, { atLeast: 1, atMost: 1000 });
  cleanup.finish();
  const events = readEvents(reader.section('events'), grace);
  const resolved = {
    connection: client ? { client } : { url: url ?? 'redis://localhost:6379' },
    namespace,
    partitions,
    grace,
    cron,
    batchSize,
    notifications: reader.oneOf('notifications', ['auto', 'off'], 'auto'),
    commandTimeout: reader.duration('commandTimeout', '1s', { atLeast: 10 }),
    events,
    serializer: reader.value('serializer', isSerializer, 'an AttributeSerializer') ?? new JsonAttributeSerializer(),
    requireAtStart: reader.boolean('requireAtStart', false),
  };
  reader.finish();
  return Object.freeze(resolved);
}

function readEvents(reader: OptionReader, grace: number): ResolvedRedisSessionOptions['events'] {
  const groupProblem = (group: string) => (group.trim() === '' ? 'must not be empty' : undefined);
  const retention = reader.duration('retention', `${Math.max(3_600_000, grace)}ms`);
  if (retention < grace) reader.problem('Option `events.retention` must be at least as long as `grace`.');
  const events = {
    group: reader.text('group', 'default', groupProblem),
    consume: reader.boolean('consume', true),
    retention,
    maxLength: reader.integer('maxLength', 1_000_000, { atLeast: 1, atMost: Number.MAX_SAFE_INTEGER }),
    lease: reader.duration('lease', '30s', { atLeast: SECOND }),
    attempts: reader.integer('attempts', 10, { atLeast: 1, atMost: 1000 }),
    shutdownTimeout: reader.duration('shutdownTimeout', '10s'),
    concurrency: reader.integer('concurrency', 32, { atLeast: 1, atMost: 10_000 }),
  };
  reader.finish();
  return events;
}

function urlProblem(url: string): string | undefined {
  // The url itself stays out of the message: it may hold a password.
  const protocol = URL.canParse(url) ? new URL(url).protocol : '';
  return protocol === 'redis:' || protocol === 'rediss:' ? undefined : 'must be a redis:// or rediss:// url';
}

function cronProblem(cron: string): string | undefined {
  return validateCronExpression(cron).valid ? undefined : 'is not a cron expression';
}

// Not `instanceof`: the application may have another copy of ioredis than the one found here.
function isClient(value: unknown): value is Redis {
  return typeof value === 'object' && value !== null && 'duplicate' in value && 'options' in value;
}

function* clientProblems(client: Redis & { isCluster?: boolean }): Iterable<string> {
  if (client.isCluster) yield 'Option `client` is a Redis Cluster, which this version does not support yet.';
  const { keyPrefix } = client.options as RedisOptions;
  if (keyPrefix) {
    yield 'Option `client` has a `keyPrefix`, which Redis does not put before keys that scripts derive: use `namespace`.';
  }
}

function isSerializer(value: unknown): value is AttributeSerializer {
  return typeof value === 'object' && value !== null && 'serialize' in value && 'deserialize' in value;
}
