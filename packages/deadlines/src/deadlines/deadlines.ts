import { randomUUID } from 'node:crypto';
import { Inject, Injectable, Optional } from '@nestjs/common';
import {
  readData,
  writeData,
  assertObject,
  SecurityEvents,
  SESSION_TELEMETRY,
  type SessionTelemetry,
  traced,
} from '@nest-session/core/internal';
import { deadlineChannel, type DeadlineContext } from '@nest-session/core/telemetry';
import { InvalidSessionOptionsError } from '@nest-session/core';
import { assertDeadline, assertKey, assertPlace, type DeadlineTime, dueOf, instantOf } from './deadline-arguments.js';
import type { Deadline } from './deadline.js';
import { type DeadlineBound, DeadlineBoundError, DeadlineDataError } from './deadline.errors.js';
import { DEADLINE_OPTIONS, type ResolvedDeadlineOptions } from './deadline.options.js';
import {
  type CancelReply,
  DeadlineStore,
  type IfScheduled,
  type NewDeadline,
  type RescheduleReply,
  type ScheduleReply,
  type StoredDeadline,
} from './deadline.store.js';

/** The data of a deadline, as the type of its kind says. */
export type DeadlineData<T> = undefined extends T ? { readonly data?: T } : { readonly data: T };

/** What `schedule()` is told. */
export type ScheduleOptions<T> = DeadlineTime &
  DeadlineData<T> & {
    /**
     * What happens to the deadline that waits under the same key. `'replace'`: the new one takes its place. `'keep'`:
     * it stays. `'earlier'` and `'later'`: the one that is due earlier, or later, stays. @default 'replace'
     */
    readonly ifExists?: IfScheduled;
  };

/** How `schedule()` answers: under this key none waited; the new one took its place; the one that waited stayed. */
export type ScheduleOutcome = Exclude<ScheduleReply, 'full'>;

/** How `reschedule()` answers: the time was changed; it has fired within the last hour; none waits under this key. */
export type RescheduleOutcome = RescheduleReply;

/**
 * How `cancel()` answers. `'cancelled'`: no handler is ever called with it. `'fired'`: it came within the last hour, so
 * its handlers are called, or were. `'none'`: none waits under this key.
 */
export type CancelOutcome = CancelReply;

/** A deadline that waits. */
export interface ScheduledDeadline<T> {
  /** The `id` of its event. */
  readonly id: string;
  /** Your key. */
  readonly key: string;
  /** The data with which it was scheduled; undefined without any. */
  readonly data: T;
  /** When it is due: epoch milliseconds by the store's clock. */
  readonly dueAt: number;
  /** When it was scheduled, in epoch milliseconds by the store's clock; `reschedule()` does not change it. */
  readonly scheduledAt: number;
}

/** Which of the waiting deadlines `list()` returns. */
export interface ListOptions {
  /** Only those that are due before this instant. @default all */
  readonly before?: Date | number;
  /** Only those behind this one, the last of the page before. @default from the first one */
  readonly after?: { readonly key: string; readonly dueAt: number };
  /** At most so many, 1 to 1000. @default 100 */
  readonly limit?: number;
}

const MOST_PER_CALL = 100;
const MOST_LISTED = 1000;

const STORE_MISSING =
  'It has no store: add RedisDeadlineModule.forRoot() of @nest-session/deadlines/redis to the imports of the root module, or MapDeadlineModule for a single process and for tests.';

/**
 * Schedules moments of your application under keys of your own: "order 42 is due in 15 minutes". `@OnDeadline` methods
 * hear of each when it comes. Inject it: `DeadlineModule` provides it.
 *
 * A key is a text of 1 to 1,024 bytes; each kind has keys of its own. A call that fails rejects with a
 * SessionStoreError, and may still take effect. It throws a TypeError or RangeError for arguments that cannot be meant.
 */
@Injectable()
export class Deadlines {
  readonly #store: DeadlineStore;

  /** @internal Inject it. */
  constructor(
    @Inject(DEADLINE_OPTIONS) private readonly options: ResolvedDeadlineOptions,
    @Inject(SecurityEvents) private readonly securityEvents: Pick<SecurityEvents, 'report'>,
    @Optional() @Inject(DeadlineStore) store?: DeadlineStore,
    @Optional() @Inject(SESSION_TELEMETRY) private readonly telemetry?: SessionTelemetry,
  ) {
    if (!store) throw new InvalidSessionOptionsError('DeadlineModule', [STORE_MISSING]);
    this.#store = store;
  }

  /**
   * Schedules a deadline. `in` counts by the store's clock, so the clocks of your instances do not matter.
   * @throws DeadlineBoundError when the data are too large, or too many wait; DeadlineDataError when the data cannot be
   *   stored as they are
   */
  async schedule<T>(kind: Deadline<T>, key: string, options: ScheduleOptions<T>): Promise<ScheduleOutcome> {
    assertDeadline(kind);
    assertKey(key);
    assertObject('The third argument', options);
    const [outcome] = await this.scheduleMany(kind, [{ key, ...options }]);
    return outcome!;
  }

  /**
   * Schedules many deadlines of a kind, each as `schedule()` does, and returns their outcomes in the same order. Of two
   * with the same key, the later one comes second. They are not one step: when it rejects, any of them may be
   * scheduled, and you can repeat the call.
   */
  async scheduleMany<T>(
    kind: Deadline<T>,
    deadlines: readonly ({ readonly key: string } & ScheduleOptions<T>)[],
  ): Promise<ScheduleOutcome[]> {
    assertDeadline(kind);
    if (!Array.isArray(deadlines)) throw new TypeError('The second argument must be an array of deadlines');
    for (const each of deadlines) assertObject('A deadline', each);
    const traceparent = this.telemetry?.traceparent();
    const all = deadlines.map((each) => this.#newDeadline(kind, each, traceparent));
    const outcomes: ScheduleOutcome[] = [];
    for (const batch of batchesOf(all)) {
      const replies = await this.#traced('schedule', kind, () =>
        this.#store.schedule(kind.name, batch, this.options.maxScheduled),
      );
      if (replies.includes('full')) this.#refuse('maxScheduled', kind);
      outcomes.push(...(replies as ScheduleOutcome[]));
    }
    return outcomes;
  }

  /** Gives the deadline that waits under a key another time. Its data and its `id` stay. */
  async reschedule(kind: Deadline<unknown>, key: string, time: DeadlineTime): Promise<RescheduleOutcome> {
    assertDeadline(kind);
    assertKey(key);
    const due = dueOf(time);
    return this.#traced('reschedule', kind, () => this.#store.reschedule(kind.name, key, due));
  }

  /** Cancels the deadline that waits under a key. It never rejects for a race: the answer says who was first. */
  async cancel(kind: Deadline<unknown>, key: string): Promise<CancelOutcome> {
    assertDeadline(kind);
    assertKey(key);
    return this.#traced('cancel', kind, () => this.#store.cancel(kind.name, key));
  }

  /** The deadline that waits under a key. @throws DeadlineDataError where its data cannot be read */
  async get<T>(kind: Deadline<T>, key: string): Promise<ScheduledDeadline<T> | undefined> {
    assertDeadline(kind);
    assertKey(key);
    const found = await this.#traced('get', kind, () => this.#store.get(kind.name, key));
    return found && this.#scheduled(kind, found);
  }

  /** How many of a kind wait. */
  async count(kind: Deadline<unknown>): Promise<number> {
    assertDeadline(kind);
    return this.#traced('count', kind, () => this.#store.count(kind.name));
  }

  /**
   * A page of the deadlines of a kind that wait, in the order of their times. For the next page, pass the last one as
   * `after`. @throws DeadlineDataError where data cannot be read
   */
  async list<T>(kind: Deadline<T>, options: ListOptions = {}): Promise<ScheduledDeadline<T>[]> {
    assertDeadline(kind);
    assertObject('The second argument', options);
    const { before, after, limit = 100 } = options;
    if (!Number.isInteger(limit) || limit < 1 || limit > MOST_LISTED)
      throw new RangeError(`\`limit\` must be a whole number from 1 to ${MOST_LISTED}`);
    if (after !== undefined) assertPlace(after);
    const page = { before: before === undefined ? undefined : instantOf(before, 'before'), after, limit };
    const found = await this.#traced('list', kind, () => this.#store.list(kind.name, page));
    return found.map((each) => this.#scheduled(kind, each));
  }

  #newDeadline<T>(
    kind: Deadline<T>,
    { key, data, ifExists = 'replace', ...time }: { readonly key: string } & ScheduleOptions<T>,
    traceparent: string | undefined,
  ): NewDeadline {
    assertKey(key);
    if (!IF_SCHEDULED.includes(ifExists)) throw new TypeError(`\`ifExists\` must be one of ${IF_SCHEDULED.join(', ')}`);
    const due = dueOf(time as DeadlineTime);
    const text = writeData(kind.name, data, this.#store.serializer, DeadlineDataError);
    if (text !== undefined && Buffer.byteLength(text) > this.options.maxDataSize) this.#refuse('maxDataSize', kind);
    return { key, id: randomUUID(), due, text, ifExists, traceparent };
  }

  #scheduled<T>({ name }: Deadline<T>, { id, key, text, dueAt, scheduledAt }: StoredDeadline): ScheduledDeadline<T> {
    return { id, key, data: readData(name, text, this.#store.serializer, DeadlineDataError) as T, dueAt, scheduledAt };
  }

  #refuse(bound: DeadlineBound, { name }: Deadline<unknown>): never {
    this.securityEvents.report('limit-reached', { limit: bound });
    throw new DeadlineBoundError(bound, this.options[bound], name);
  }

  #traced<T>(operation: DeadlineContext['operation'], { name }: Deadline<unknown>, call: () => Promise<T>): Promise<T> {
    if (!deadlineChannel.hasSubscribers) return call();
    const context: DeadlineContext = { operation, namespace: this.#store.namespace, deadline: name };
    const tell = (result: T) => {
      const first: unknown = Array.isArray(result) ? result[0] : result;
      return typeof first === 'string' ? { outcome: first } : {};
    };
    return traced(deadlineChannel, context, call, tell);
  }
}

const IF_SCHEDULED: readonly IfScheduled[] = ['replace', 'keep', 'earlier', 'later'];

/** In calls of the store, each with different keys. */
function batchesOf(deadlines: readonly NewDeadline[]): NewDeadline[][] {
  const batches: NewDeadline[][] = [];
  let keys = new Set<string>();
  for (const each of deadlines) {
    if (keys.size === 0 || keys.size === MOST_PER_CALL || keys.has(each.key)) {
      batches.push([]);
      keys = new Set();
    }
    batches.at(-1)!.push(each);
    keys.add(each.key);
  }
  return batches;
}
