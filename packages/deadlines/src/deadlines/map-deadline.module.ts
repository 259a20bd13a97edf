import { hostname } from 'node:os';
import {
  type BeforeApplicationShutdown,
  type DynamicModule,
  Global,
  Inject,
  Injectable,
  Module,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import {
  assertLimit,
  backOffAfter,
  type Clock,
  type DeadLetterFilter,
  EventHandlingError,
  logger,
  MEASURED_DEADLINES,
  readData,
  reasonOf,
  type RemoveGroupReply,
  type ReplayReply,
  RETRIES,
} from '@nest-session/core/internal';
import { type DeadlineEvent, eventOf } from './deadline-event.js';
import { type DeadlineDeadLetter, DeadlineEvents, type DeadlineGroupInfo } from './deadline-event-groups.js';
import { DeadlineDispatcher, DeadlineHandlerModule, shownDeadline } from './deadline-handlers.js';
import type { MapDeadlineModuleOptions } from './deadline.options.js';
import { DeadlineDataError } from './deadline.errors.js';
import { DeadlineStore } from './deadline.store.js';
import {
  type FiredDeadline,
  MAP_DEADLINE_CLOCK,
  MAP_DEADLINE_OPTIONS,
  MapDeadlineStore,
} from './map-deadline.store.js';

const MEMORY_GROUP = 'default';
const MOST_LETTERS = 1000;
const MOST_LISTED = 100;

/** The clock may be set forward, and a timer does not count the time in which the machine slept. */
const LONGEST_WAIT = 1000;

/** How far the handlers of a deadline are. */
interface Delivery {
  readonly fired: FiredDeadline;
  /** The number of the next attempt. */
  readonly attempt: number;
  /** The names of the handlers that have succeeded. */
  readonly done: readonly string[];
}

/**
 * Fires deadlines at their times, tries again those whose handlers fail, and keeps the dead letters. It sleeps until
 * the next of them, and has no timer while nothing waits. Deadlines without a handler in this application wait on.
 */
@Injectable()
export class MapDeadlineDelivery extends DeadlineEvents {
  #timer: NodeJS.Timeout | undefined;
  /** The names that are handled here; empty while it is stopped. */
  #names: readonly string[] = [];
  readonly #running = new Set<Promise<void>>();
  readonly #retries = new Set<{ readonly due: number; readonly delivery: Delivery }>();
  #nextRetry = Infinity;
  /** By their ids, the oldest first. */
  readonly #letters = new Map<string, { readonly letter: DeadlineDeadLetter; readonly delivery: Delivery }>();
  #lastLetter = 0;
  #lostLetters = 0;

  constructor(
    @Inject(DeadlineDispatcher) private readonly dispatcher: DeadlineDispatcher,
    @Inject(MapDeadlineStore) private readonly store: MapDeadlineStore,
    @Inject(MAP_DEADLINE_CLOCK) private readonly clock: Clock,
  ) {
    super();
  }

  get retrying(): number {
    return this.#retries.size;
  }

  /** When the next retry is due; Infinity when none waits. */
  get nextRetry(): number {
    return this.#nextRetry;
  }

  /** When something is due next; Infinity while it is stopped, or nothing waits. */
  get nextDue(): number {
    return this.#names.length === 0 ? Infinity : Math.min(this.store.nextDue(this.#names), this.#nextRetry);
  }

  /** Does not keep the process alive. */
  start(): void {
    const { dispatcher } = this;
    this.#names = [...new Set([...dispatcher.wantedTypes(), ...dispatcher.wantedTypes({ broadcast: true })])];
    this.store.onScheduled(() => this.#sleep());
    this.#sleep();
  }

  /** Fires nothing more. */
  stop(): void {
    this.#names = [];
    this.#sleep();
  }

  runDue(): void {
    for (const fired of this.store.takeDue(this.#names)) this.deliver(fired);
    if (this.#names.length > 0) this.retryDue();
    this.#sleep();
  }

  deliver(fired: FiredDeadline): void {
    void this.dispatcher.broadcast(this.#eventOf(fired, 1));
    this.#begin({ fired, attempt: 1, done: [] });
  }

  /** Begins the retries that are due. */
  retryDue(): void {
    const now = this.clock.now();
    this.#nextRetry = Infinity;
    for (const retry of this.#retries) {
      if (retry.due > now) {
        this.#nextRetry = Math.min(this.#nextRetry, retry.due);
        continue;
      }
      this.#retries.delete(retry);
      this.#begin(retry.delivery);
    }
  }

  /** Resolves when no handler runs. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
    await this.dispatcher.idle();
  }

  async list(): Promise<DeadlineGroupInfo[]> {
    if (!this.dispatcher.hasHandlers) return [];
    const [retrying, lostDeadLetters] = [this.retrying, this.#lostLetters];
    const pending = this.#running.size + retrying;
    const consumers = [{ name: `${hostname()}:${process.pid}`, pending, idle: 0 }];
    const nothing = { lag: 0, oldestUnread: undefined, dropped: 0 };
    return [{ name: MEMORY_GROUP, ...nothing, pending, retrying, lostDeadLetters, consumers }];
  }

  async create(name: string): Promise<boolean> {
    if (name.trim() === '') throw new RangeError('The name of a group must not be empty');
    if (name !== MEMORY_GROUP || !this.dispatcher.hasHandlers) throw new RangeError(ONE_GROUP);
    return false;
  }

  async remove(name: string): Promise<RemoveGroupReply> {
    return name === MEMORY_GROUP && this.dispatcher.hasHandlers ? 'live' : 'unknown';
  }

  async deadLetters({
    group,
    after,
    limit = MOST_LISTED,
  }: DeadLetterFilter & { readonly after?: string; readonly limit?: number } = {}): Promise<DeadlineDeadLetter[]> {
    if (after !== undefined && !/^\d{1,15}$/.test(after))
      throw new RangeError('`after` must be the id of a dead letter');
    assertLimit(limit);
    return this.#chosen(group)
      .filter(({ id }) => Number(id) > Number(after ?? 0))
      .slice(0, limit);
  }

  async replay(id: string): Promise<ReplayReply> {
    return this.#replay(id) ? 'replayed' : 'gone';
  }

  async replayAll({ group }: DeadLetterFilter = {}): Promise<number> {
    return this.#chosen(group).filter(({ id }) => this.#replay(id)).length;
  }

  async discard(id: string): Promise<boolean> {
    return this.#letters.delete(id);
  }

  async discardAll({ group }: DeadLetterFilter = {}): Promise<number> {
    return this.#chosen(group).filter(({ id }) => this.#letters.delete(id)).length;
  }

  #chosen(group = MEMORY_GROUP): DeadlineDeadLetter[] {
    return group === MEMORY_GROUP ? [...this.#letters.values()].map(({ letter }) => letter) : [];
  }

  #replay(id: string): boolean {
    const found = this.#letters.get(id);
    if (found) this.#begin({ ...found.delivery, attempt: 1 });
    return this.#letters.delete(id);
  }

  #begin(delivery: Delivery): void {
    const attempt = this.#attempt(delivery).finally(() => this.#running.delete(attempt));
    this.#running.add(attempt);
  }

  async #attempt(delivery: Delivery): Promise<void> {
    const { fired, attempt, done } = delivery;
    try {
      await this.dispatcher.dispatch(this.#eventOf(fired, attempt), { done });
    } catch (error) {
      // Everything else means that the application ends.
      if (error instanceof EventHandlingError) this.#fail(delivery, error);
    }
  }

  #fail({ fired, attempt, done }: Delivery, error: EventHandlingError): void {
    const failed = { fired, attempt, done: [...done, ...error.succeeded] };
    if (attempt >= RETRIES.attempts) return this.#bury(failed, error);
    const due = this.clock.now() + backOffAfter(attempt);
    this.#retries.add({ due, delivery: { ...failed, attempt: attempt + 1 } });
    this.#nextRetry = Math.min(this.#nextRetry, due);
    logger.warn(
      `Event ${shownDeadline(fired)} failed in attempt ${attempt} of ${RETRIES.attempts} and will be retried`,
    );
    this.#sleep();
  }

  #bury(delivery: Delivery, { failed }: EventHandlingError): void {
    const { fired, attempt, done } = delivery;
    const handler = failed[0]?.name;
    const letter: DeadlineDeadLetter = {
      id: String(++this.#lastLetter),
      at: this.clock.now(),
      reason: reasonOf(failed),
      group: MEMORY_GROUP,
      handler,
      attempts: attempt,
      succeeded: done,
      event: this.#eventOf(fired, attempt),
      omittedBytes: undefined,
      member: undefined,
    };
    this.#letters.set(letter.id, { letter, delivery });
    if (this.#letters.size > MOST_LETTERS) {
      const [oldest] = this.#letters.keys();
      this.#letters.delete(oldest!);
      this.#lostLetters++;
    }
    this.dispatcher.reportDeadLetter('deadline', handler ?? '');
    logger.error(
      `Event ${shownDeadline(fired)} is a dead letter now, see DeadlineEvents: ${JSON.stringify(letter.reason)}`,
    );
  }

  #eventOf({ text, ...fired }: FiredDeadline, attempt: number): DeadlineEvent {
    const { serializer } = this.store;
    return eventOf({ ...fired, attempt }, () => readData(fired.name, text, serializer, DeadlineDataError));
  }

  #sleep(): void {
    clearTimeout(this.#timer);
    const wait = this.nextDue - this.clock.now();
    if (wait === Infinity) return;
    this.#timer = setTimeout(() => this.runDue(), Math.min(wait, LONGEST_WAIT)).unref();
  }
}

const ONE_GROUP =
  'Deadlines in memory have one group, "default", which handles what comes in this process: remove the call, or use ' +
  'RedisDeadlineModule of @nest-session/deadlines/redis';

/**
 * Keeps deadlines in memory, for an application of a single process and for tests. Import the class, or `forRoot()` for
 * another serializer. **A restart loses everything**: what waits, what is retried, and the dead letters. There is one
 * group, `default`. After 10 attempts, a deadline is a dead letter; the last 1,000 are kept. Otherwise it behaves like
 * a store that many instances share.
 */
@Global()
@Module({
  imports: [DeadlineHandlerModule],
  providers: [
    // `forRoot()` replaces it.
    { provide: MAP_DEADLINE_OPTIONS, useValue: {} },
    { provide: MAP_DEADLINE_CLOCK, useValue: Date },
    MapDeadlineStore,
    MapDeadlineDelivery,
    { provide: DeadlineStore, useExisting: MapDeadlineStore },
    { provide: DeadlineEvents, useExisting: MapDeadlineDelivery },
    { provide: MEASURED_DEADLINES, useExisting: MapDeadlineStore },
  ],
  // The last one: for @nest-session/opentelemetry.
  exports: [DeadlineStore, DeadlineEvents, MEASURED_DEADLINES],
})
export class MapDeadlineModule implements OnApplicationBootstrap, BeforeApplicationShutdown {
  /** @internal Import it. */
  constructor(@Inject(MapDeadlineDelivery) private readonly delivery: MapDeadlineDelivery) {}

  /**
   * Returns the module for the imports of the root module.
   * @throws InvalidSessionOptionsError at start, which names all problems of the options
   */
  static forRoot(options: MapDeadlineModuleOptions = {}): DynamicModule {
    return { module: MapDeadlineModule, providers: [{ provide: MAP_DEADLINE_OPTIONS, useValue: options }] };
  }

  /** Begins to fire deadlines. Called by Nest. */
  onApplicationBootstrap(): void {
    this.delivery.start();
  }

  /** The dispatcher waits for handlers that still run, after the last response. */
  beforeApplicationShutdown(): void {
    this.delivery.stop();
  }
}
