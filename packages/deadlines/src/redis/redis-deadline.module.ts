import {
  type ConfigurableModuleAsyncOptions,
  type DynamicModule,
  Global,
  Inject,
  Injectable,
  Module,
  type Provider,
} from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import type { Redis } from 'ioredis';
import {
  BackgroundLimiter,
  connectionToken,
  ContentStartLog,
  DELIVERY_OPTIONS,
  type DeliveryOptions,
  type DueList,
  DuePoller,
  DueSweeper,
  EVENT_RULES,
  EventGroups,
  EventProducer,
  type eventRules,
  fieldOf,
  logger,
  nameOf,
  PartitionSignals,
  type ScriptsOn,
  scriptsOn,
  storeLifecycle,
  storeProviders,
  storeServices,
  type StreamEntry,
  type SweepCounter,
  type SweepOptions,
} from '@nest-session/redis-events/internal';
import { assertConfiguredOnce, DEADLINE_READER, MEASURED_DEADLINES, readData } from '@nest-session/core/internal';
import { tracedPoller } from '@nest-session/redis/internal';
import { DeadlineStore, FIRED_KNOWN_FOR } from '../deadlines/deadline.store.js';
import { DEADLINE_ENTRIES, type DeadlineKeys, DeadlinePartitions } from './deadline-keys.js';
import { DeadlineScripts, type FiringRules } from '../scripts/deadlines/deadline.scripts.js';
import {
  BACKGROUND_DEADLINE_SCRIPTS,
  MODULE,
  REDIS_DEADLINE_MODULE_OPTIONS,
  REDIS_DEADLINE_OPTIONS,
  RedisDeadlineModuleDefinition,
  type RedisDeadlineModuleOptions,
  REQUEST_DEADLINE_SCRIPTS,
  type ResolvedRedisDeadlineOptions,
  resolveRedisDeadlineOptions,
} from './redis-deadline.options.js';
import { DeadlineEvent } from '../deadlines/deadline-event.js';
import { DeadlineDispatcher, DeadlineHandlerModule, shownDeadline } from '../deadlines/deadline-handlers.js';
import { DeadlineDataError } from '../deadlines/deadline.errors.js';
import { DeadlineEvents } from '../deadlines/deadline-event-groups.js';
import { RedisDeadlineReader, RedisDeadlineStore } from './redis-deadline.store.js';

/** Deadlines per call: one takes Redis about 20 µs, and other commands wait as long as a call. */
const BATCH_SIZE = 50;

/** Fires the deadlines whose time has come. Any number of instances may do so: a script fires each once. */
@Injectable()
export class DeadlineSweeper extends DueSweeper<DeadlineKeys> implements DueList<DeadlineKeys> {
  readonly what = 'deadlines';
  readonly #rules: FiringRules;
  /** The partitions where too many events wait. */
  readonly #full = new Set<DeadlineKeys>();

  constructor(
    @Inject(BACKGROUND_DEADLINE_SCRIPTS) private readonly scripts: Pick<DeadlineScripts, 'fire'>,
    @Inject(BackgroundLimiter) private readonly limiter: BackgroundLimiter,
    @Inject(DeadlinePartitions) partitions: DeadlinePartitions,
    @Inject(EVENT_RULES) { deadLetters }: ReturnType<typeof eventRules>,
    @Inject(REDIS_DEADLINE_OPTIONS) { events }: Pick<ResolvedRedisDeadlineOptions, 'events'>,
  ) {
    super();
    this.#rules = {
      batchSize: BATCH_SIZE,
      maxLength: partitions.shareOf(events.maxLength),
      knownFor: FIRED_KNOWN_FOR,
      maxDeadLetterSize: deadLetters.maxSize,
    };
  }

  async sweep(partitions: readonly DeadlineKeys[], tally: SweepCounter, options: SweepOptions): Promise<void> {
    for (const keys of partitions) {
      if (options.signal?.aborted) return;
      await this.claimIn(keys, tally, options).catch((error: unknown) => tally.failures.push(error));
    }
  }

  async claimIn(keys: DeadlineKeys, tally: SweepCounter, { signal }: SweepOptions): Promise<number | undefined> {
    while (!signal?.aborted) {
      const fired = await this.limiter.run(() => this.scripts.fire(keys, this.#rules), keys.prefix);
      for (const each of fired.entries) tally.count(keys, each.id, each, Number(each.time), fired.now);
      // Once, until no partition has a backlog any more.
      if (fired.isFull && this.#full.size === 0) logger.error(BACKLOG);
      if (fired.isFull) this.#full.add(keys);
      else this.#full.delete(keys);
      if (fired.isFull || fired.next !== 0) return fired.next;
    }
    return undefined;
  }
}

const BACKLOG =
  'Deadlines wait longer than they should, because `events.maxLength` events wait for their groups: see DeadlineEvents.list()';

@Injectable()
class DeadlineEventProducer extends EventProducer<DeadlineEvent> {
  readonly kind = DEADLINE_ENTRIES;
  readonly groupsClass = 'DeadlineEvents';

  constructor(
    @Inject(DeadlineDispatcher) readonly handlers: DeadlineDispatcher,
    @Inject(REDIS_DEADLINE_OPTIONS)
    private readonly options: Pick<ResolvedRedisDeadlineOptions, 'serializer' | 'encryption'>,
  ) {
    super();
  }

  toEvent(entry: StreamEntry, _data: unknown, attempt: number): DeadlineEvent | undefined {
    if (fieldOf(entry, 'type') !== 'deadline') return undefined;
    const text = (name: string) => fieldOf(entry, name) ?? '';
    const deadline = { id: text('id'), name: text('name'), key: text('key') };
    const times = { dueAt: Number(text('due')), at: Number(text('at')) };
    const read = () => this.#dataOf(entry, deadline) as never;
    return new DeadlineEvent({
      ...deadline,
      ...times,
      attempt,
      traceparent: fieldOf(entry, 'traceparent'),
      get data() {
        return read();
      },
    });
  }

  shownIdOf(entry: StreamEntry): string {
    const [id, name] = [fieldOf(entry, 'id'), fieldOf(entry, 'name')];
    return id === undefined || name === undefined ? nameOf(entry) : shownDeadline({ id, name });
  }

  /** During a deployment, other instances of the group may have handlers that this one lacks, and must not lose. */
  override missingHandlerOf({ name }: DeadlineEvent): string | undefined {
    return this.handlers.wantedTypes().includes(name) ? undefined : name;
  }

  #dataOf(entry: StreamEntry, deadline: { id: string; name: string; key: string }): unknown {
    const stored = fieldOf(entry, 'value');
    if (stored === undefined) return undefined;
    const { encryption, serializer } = this.options;
    const text = encryption.decrypted({ text: stored, dataKey: fieldOf(entry, 'dataKey') }, deadline);
    return readData(deadline.name, text, serializer, DeadlineDataError);
  }
}

@Injectable()
class RedisDeadlineEvents extends EventGroups<DeadlineEvent> implements DeadlineEvents {}

const PROVIDERS: Provider[] = [
  ...storeProviders<RedisDeadlineModuleOptions>({
    module: MODULE,
    given: REDIS_DEADLINE_MODULE_OPTIONS,
    options: REDIS_DEADLINE_OPTIONS,
    resolve: resolveRedisDeadlineOptions,
    usesShared: true,
    partitions: DeadlinePartitions,
    producer: DeadlineEventProducer,
    sweeper: { useExisting: DeadlineSweeper },
    cleanupJob: 'deadline-cleanup',
  }),
  {
    provide: DELIVERY_OPTIONS,
    inject: [REDIS_DEADLINE_OPTIONS],
    // No event makes room for another one: as long as there are `maxLength`, DeadlineSweeper fires nothing.
    useFactory: (options: ResolvedRedisDeadlineOptions): DeliveryOptions => ({
      ...options,
      events: { ...options.events, maxLength: Number.MAX_SAFE_INTEGER },
    }),
  },
  {
    provide: DeadlinePartitions,
    inject: [REDIS_DEADLINE_OPTIONS],
    useFactory: ({ namespace, partitions }: ResolvedRedisDeadlineOptions) =>
      new DeadlinePartitions(namespace, partitions),
  },
  { provide: REQUEST_DEADLINE_SCRIPTS, useFactory: () => scriptsOn((client) => new DeadlineScripts(client)) },
  {
    provide: BACKGROUND_DEADLINE_SCRIPTS,
    inject: [REQUEST_DEADLINE_SCRIPTS, connectionToken('background')],
    useFactory: (scripts: ScriptsOn<DeadlineScripts>, client: Redis) => scripts(client),
  },
  DeadlineSweeper,
  { provide: DuePoller, inject: [DeadlineSweeper, DeadlinePartitions, PartitionSignals], useFactory: tracedPoller },
  RedisDeadlineStore,
  { provide: DeadlineStore, useExisting: RedisDeadlineStore },
  RedisDeadlineEvents,
  { provide: DeadlineEvents, useExisting: RedisDeadlineEvents },
  RedisDeadlineReader,
  { provide: DEADLINE_READER, useExisting: RedisDeadlineReader },
  { provide: MEASURED_DEADLINES, useExisting: RedisDeadlineStore },
  ContentStartLog,
  storeLifecycle(() => storeServices({ after: [DuePoller], log: ContentStartLog })),
];

/**
 * Keeps the deadlines of `DeadlineModule` in Redis, and delivers them when they come. It is global: import it once, in
 * the root module, with `forRoot()` or `forRootAsync()`. Without an address in its options it uses the connections of
 * `RedisSessionModule`, where that is imported. In a test, replace it by its name:
 * `overrideModule(RedisDeadlineModule)`.
 */
@Global()
@Module({
  imports: [DeadlineHandlerModule],
  providers: PROVIDERS,
  // The last two: for @nest-session/opentelemetry and @nest-session/admin.
  exports: [DeadlineStore, DeadlineEvents, DEADLINE_READER, MEASURED_DEADLINES],
})
export class RedisDeadlineModule {
  /** For the imports of the root module. Wrong options fail the start with an error that names all problems. */
  static forRoot(options: RedisDeadlineModuleOptions = {}): DynamicModule {
    return RedisDeadlineOptionsModule.forRoot(options);
  }

  /** The same with injected options, by `useFactory`, `useClass` or `useExisting`. */
  static forRootAsync(
    options: ConfigurableModuleAsyncOptions<RedisDeadlineModuleOptions, 'createRedisDeadlineOptions'>,
  ): DynamicModule {
    return RedisDeadlineOptionsModule.forRootAsync(options);
  }
}

/** Holds the options: see `RedisSessionModule`. */
@Module({ imports: [RedisDeadlineModule], exports: [REDIS_DEADLINE_MODULE_OPTIONS] })
class RedisDeadlineOptionsModule extends RedisDeadlineModuleDefinition {
  /** @internal Import it with `forRoot()`. */
  constructor(@Inject(ModulesContainer) modules: ModulesContainer) {
    super();
    assertConfiguredOnce(modules, RedisDeadlineOptionsModule, MODULE);
  }
}
