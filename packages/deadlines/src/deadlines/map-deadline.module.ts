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
import { type AttributeSerializer, JsonAttributeSerializer } from '@nest-session/core';
import {
  assertLimit,
  backOffAfter,
  type Clock,
  type DeadLetterFilter,
  EventHandlingError,
  isSerializer,
  logger,
  MEASURED_DEADLINES,
  OptionReader,
  readData,
  reasonOf,
  type RemoveGroupReply,
  type ReplayReply,
  RETRIES,
} from '@nest-session/core/internal';
import { DeadlineEvent } from './deadline-event.js';
import { type DeadlineDeadLetter, DeadlineEvents, type DeadlineGroupInfo } from './deadline-event-groups.js';
import { DeadlineDispatcher, DeadlineHandlerModule, shownDeadline } from './deadline-handlers.js';
import { DeadlineDataError } from './deadline.errors.js';
import {
  type CancelOutcome,
  type DeadlinePage,
  DeadlineStore,
  type Due,
  FIRED_KNOWN_FOR,
  type IfScheduled,
  type NewDeadline,
  type RescheduleOutcome,
  type ScheduleReply,
  type StoredDeadline,
} from './deadline.store.js';

/** Options of `MapDeadlineModule.forRoot()`. */
export interface MapDeadlineModuleOptions {
  /** Turns the data of deadlines into text and back. @default JSON */
  serializer?: AttributeSerializer;
}

export function resolveMapDeadlineOptions(options: MapDeadlineModuleOptions) {
  const reader = new OptionReader('MapDeadlineModule', options);
  const serializer = reader.value('serializer', isSerializer, 'an AttributeSerializer');
  reader.finish();
  return { serializer };
}

const MAP_DEADLINE_OPTIONS = Symbol('MAP_DEADLINE_OPTIONS');

/** The clock by which deadlines are due; `TestDeadlineModule` overrides it. */
export const MAP_DEADLINE_CLOCK = Symbol('MAP_DEADLINE_CLOCK');

interface WaitingDeadline extends StoredDeadline {
  readonly name: string;
  readonly traceparent: string | undefined;
}

// The order of pages.
function compare(one: Place, other: Place): number {
  return one.dueAt - other.dueAt || Number(one.key > other.key) - Number(one.key < other.key);
}

type Place = Pick<StoredDeadline, 'key' | 'dueAt'>;

interface FiredDeadline extends WaitingDeadline {
  readonly at: number;
}

/**
 * The deadlines of `MapDeadlineModule`. Each step is synchronous, hence atomic. Each search looks at all that wait: for
 * a single process, an order would cost more than it saves.
 */
@Injectable()
export class MapDeadlineStore extends DeadlineStore {
  override readonly namespace = '';
  override readonly serializer: AttributeSerializer;
  readonly #waiting = new Map<string, Map<string, WaitingDeadline>>();
  /** When they fired, by name and key, in the order in which they did. */
  readonly #fired = new Map<string, number>();
  #scheduled: (name: string, dueAt: number) => void = () => undefined;

  constructor(
    @Inject(MAP_DEADLINE_OPTIONS) options: MapDeadlineModuleOptions,
    @Inject(MAP_DEADLINE_CLOCK) private readonly clock: Clock,
  ) {
    super();
    this.serializer = resolveMapDeadlineOptions(options).serializer ?? new JsonAttributeSerializer();
  }

  /** Calls a listener after a deadline was scheduled or given another time. */
  onScheduled(listener: (name: string, dueAt: number) => void): void {
    this.#scheduled = listener;
  }

  async schedule(name: string, deadlines: readonly NewDeadline[], most: number): Promise<ScheduleReply[]> {
    return deadlines.map((each) => this.#schedule(name, each, most));
  }

  async reschedule(name: string, key: string, due: Due): Promise<RescheduleOutcome> {
    const waiting = this.#of(name).get(key);
    if (!waiting) return this.#hasFired(name, key) ? 'fired' : 'none';
    this.#put({ ...waiting, dueAt: dueAtOf(due, this.clock.now()) });
    return 'moved';
  }

  async cancel(name: string, key: string): Promise<CancelOutcome> {
    if (this.#of(name).delete(key)) return 'cancelled';
    return this.#hasFired(name, key) ? 'fired' : 'none';
  }

  async get(name: string, key: string): Promise<StoredDeadline | undefined> {
    return this.#of(name).get(key);
  }

  async count(name: string): Promise<number> {
    return this.#of(name).size;
  }

  async list(name: string, { before = Infinity, after, limit }: DeadlinePage): Promise<StoredDeadline[]> {
    const isListed = (each: StoredDeadline) => each.dueAt < before && (!after || compare(each, after) > 0);
    return [...this.#of(name).values()].filter(isListed).toSorted(compare).slice(0, limit);
  }

  /** When the next one of these names is due; Infinity when none waits. */
  nextDue(names: readonly string[]): number {
    return this.#allOf(names).reduce((next, { dueAt }) => Math.min(next, dueAt), Infinity);
  }

  /** Fires what is due of these names: removes it, and returns it in the order of the times. */
  takeDue(names: readonly string[]): FiredDeadline[] {
    const at = this.clock.now();
    const due = this.#allOf(names).filter(({ dueAt }) => dueAt <= at);
    for (const { name, key } of due) {
      this.#of(name).delete(key);
      this.#fired.set(firedKey(name, key), at);
    }
    for (const [key, firedAt] of this.#fired) {
      if (firedAt > at - FIRED_KNOWN_FOR) break;
      this.#fired.delete(key);
    }
    return due.toSorted(compare).map((each) => ({ ...each, at }));
  }

  #schedule(name: string, { due, ifExists, traceparent, ...deadline }: NewDeadline, most: number): ScheduleReply {
    const waiting = this.#of(name).get(deadline.key);
    const now = this.clock.now();
    const dueAt = dueAtOf(due, now);
    if (waiting && stays(waiting, dueAt, ifExists)) return 'kept';
    if (!waiting && this.#of(name).size >= most) return 'full';
    this.#put({ ...deadline, name, dueAt, scheduledAt: now, traceparent });
    this.#fired.delete(firedKey(name, deadline.key));
    return waiting ? 'replaced' : 'scheduled';
  }

  #put(deadline: WaitingDeadline): void {
    this.#of(deadline.name).set(deadline.key, deadline);
    this.#scheduled(deadline.name, deadline.dueAt);
  }

  #allOf(names: readonly string[]): WaitingDeadline[] {
    return names.flatMap((name) => [...this.#of(name).values()]);
  }

  #of(name: string): Map<string, WaitingDeadline> {
    let all = this.#waiting.get(name);
    if (!all) this.#waiting.set(name, (all = new Map()));
    return all;
  }

  #hasFired(name: string, key: string): boolean {
    const at = this.#fired.get(firedKey(name, key));
    return at !== undefined && at > this.clock.now() - FIRED_KNOWN_FOR;
  }
}

/** Whether the deadline that waits stays: as `stays()` of scripts/deadlines/schedule-deadlines.lua. */
function stays({ dueAt }: WaitingDeadline, newDueAt: number, ifExists: IfScheduled): boolean {
  if (ifExists === 'earlier') return dueAt <= newDueAt;
  return ifExists === 'later' ? dueAt >= newDueAt : ifExists === 'keep';
}

/** A name has no space. */
function firedKey(name: string, key: string): string {
  return `${name} ${key}`;
}

function dueAtOf(due: Due, now: number): number {
  return 'at' in due ? due.at : now + due.in;
}

const MEMORY_GROUP = 'default';
const MOST_LETTERS = 1000;
const MOST_LISTED = 100;

/** The clock may be set forward, and a timer does not count the time in which the machine slept. */
const LONGEST_WAIT = 1000;
/** So that a search among many does not take all the time, however close together they are due. */
const SHORTEST_WAIT = 2;

interface Delivery {
  readonly fired: FiredDeadline;
  /** The number of the next attempt. */
  readonly attempt: number;
  /** The names of the handlers that have succeeded. */
  readonly done: readonly string[];
}

/**
 * Fires deadlines at their times, and tries again those whose handlers fail. It has no timer while nothing waits.
 * Deadlines without a handler in this application wait on.
 */
@Injectable()
export class MapDeadlineDelivery extends DeadlineEvents {
  #timer: NodeJS.Timeout | undefined;
  /** When it looks at the latest for what is due. */
  #wakeAt = Infinity;
  /** The names that are handled here; empty while it is stopped. */
  #names: readonly string[] = [];
  readonly #running = new Set<Promise<void>>();
  readonly #retries = new Set<{ readonly due: number; readonly delivery: Delivery }>();
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

  /** When something is due next; Infinity while it is stopped, or nothing waits. */
  get nextDue(): number {
    if (this.#names.length === 0) return Infinity;
    return [...this.#retries].reduce((next, { due }) => Math.min(next, due), this.store.nextDue(this.#names));
  }

  /** Does not keep the process alive. */
  start(): void {
    const { dispatcher } = this;
    this.#names = [...new Set([...dispatcher.wantedTypes(), ...dispatcher.wantedTypes({ broadcast: true })])];
    this.store.onScheduled((name, dueAt) => {
      if (this.#names.includes(name)) this.#wakeBy(dueAt);
    });
    this.#wakeBy(this.nextDue);
  }

  stop(): void {
    this.#names = [];
    this.#wakeAt = Infinity;
    clearTimeout(this.#timer);
  }

  runDue(): void {
    for (const fired of this.store.takeDue(this.#names)) this.deliver(fired);
    const now = this.clock.now();
    for (const retry of this.#names.length > 0 ? this.#retries : []) {
      if (retry.due <= now && this.#retries.delete(retry)) this.#begin(retry.delivery);
    }
    this.#wakeAt = Infinity;
    this.#wakeBy(this.nextDue);
  }

  deliver(fired: FiredDeadline): void {
    void this.dispatcher.broadcast(this.#eventOf(fired, 1));
    this.#begin({ fired, attempt: 1, done: [] });
  }

  /** Resolves when no handler runs. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
    await this.dispatcher.idle();
  }

  async list(): Promise<DeadlineGroupInfo[]> {
    if (!this.dispatcher.hasHandlers) return [];
    const [retrying, lostDeadLetters] = [this.#retries.size, this.#lostLetters];
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
    logger.warn(
      `Event ${shownDeadline(fired)} failed in attempt ${attempt} of ${RETRIES.attempts} and will be retried`,
    );
    this.#wakeBy(due);
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

  /** Its data are read when a handler asks for them, each time as an object of its own. */
  #eventOf({ text, ...fired }: FiredDeadline, attempt: number): DeadlineEvent {
    const { serializer } = this.store;
    return new DeadlineEvent({
      ...fired,
      attempt,
      get data() {
        return readData(fired.name, text, serializer, DeadlineDataError) as never;
      },
    });
  }

  #wakeBy(time: number): void {
    if (time >= this.#wakeAt || this.#names.length === 0) return;
    this.#wakeAt = time;
    clearTimeout(this.#timer);
    const wait = Math.max(SHORTEST_WAIT, Math.min(time - this.clock.now(), LONGEST_WAIT));
    this.#timer = setTimeout(() => this.runDue(), wait).unref();
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

  /** For the imports of the root module. Wrong options fail the start with an error that names all problems. */
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
