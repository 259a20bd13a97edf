import { randomUUID } from 'node:crypto';
import { Inject, Injectable, Optional } from '@nestjs/common';
import {
  assertObject,
  assertString,
  isWellFormed,
  OptionReader,
  parseDuration,
  readData,
  SecurityEvents,
  SESSION_TELEMETRY,
  type SessionTelemetry,
  traced,
  writeData,
} from '@nest-session/core/internal';
import { type Duration, InvalidSessionOptionsError } from '@nest-session/core';
import { deadlineChannel, type DeadlineContext } from '@nest-session/core/telemetry';
import { type Deadline, isDeadline } from './deadline-event.js';
import {
  type CancelOutcome,
  DeadlineStore,
  type Due,
  type IfScheduled,
  type NewDeadline,
  type RescheduleOutcome,
  type ScheduledDeadline,
  type ScheduleOutcome,
  type StoredDeadline,
} from './deadline.store.js';
import { type DeadlineBound, DeadlineBoundError, DeadlineDataError } from './deadline.errors.js';

/** Options of `DeadlineModule.forRoot()`. */
export interface DeadlineModuleOptions {
  /** Most bytes of the text of the data of a deadline, up to 1 MiB. @default 65536 */
  maxDataSize?: number;
  /**
   * How many deadlines of one name may wait at a time. With several partitions, each has its share: the bound can be
   * reached a little earlier. @default 1000000
   */
  maxScheduled?: number;
}

export type ResolvedDeadlineOptions = Readonly<Required<DeadlineModuleOptions>>;

export const DEADLINE_OPTIONS = Symbol('DEADLINE_OPTIONS');

export function resolveDeadlineOptions(options: DeadlineModuleOptions = {}): ResolvedDeadlineOptions {
  const reader = new OptionReader('DeadlineModule', options);
  const resolved = {
    maxDataSize: reader.integer('maxDataSize', 65_536, { atLeast: 1, atMost: 2 ** 20 }),
    maxScheduled: reader.integer('maxScheduled', 1_000_000, { atLeast: 1, atMost: Number.MAX_SAFE_INTEGER }),
  };
  const help = 'it is an option of RedisDeadlineModule.forRoot()';
  const ofRedis = ['url', 'client', 'cluster', 'sentinels', 'namespace', 'events'];
  reader.finish(Object.fromEntries(ofRedis.map((name) => [name, help])));
  return Object.freeze(resolved);
}

const LONGEST_KEY = 1024;
// Milliseconds: the year 10000. A later instant is a mistake in units.
const LAST_INSTANT = 253_402_300_800_000;

/** When a deadline is due: after a duration by the store's clock, such as `'15m'`, or at an instant. */
export type DeadlineTime =
  | { readonly in: Duration; readonly at?: undefined }
  /** A `Date`, or epoch milliseconds. In the past: at once. */
  | { readonly at: Date | number; readonly in?: undefined };

function assertDeadline(kind: unknown): void {
  if (!isDeadline(kind)) throw new TypeError('The first argument must be what deadline() returns');
}

function assertKey(key: unknown): void {
  assertString('The key of a deadline', key);
  const size = Buffer.byteLength(key);
  if (size === 0 || size > LONGEST_KEY)
    throw new RangeError(`The key of a deadline must have 1 to ${LONGEST_KEY} bytes, not ${size}`);
  if (!isWellFormed(key)) throw new RangeError('The key of a deadline must be well-formed Unicode');
}

function dueOf(time: DeadlineTime): Due {
  assertObject('The time of a deadline', time);
  const { in: duration, at } = time;
  if ((duration === undefined) === (at === undefined))
    throw new TypeError("A deadline needs either `in`, as in { in: '15m' }, or `at`, a Date or epoch milliseconds");
  if (at !== undefined) return { at: instantOf(at, 'at') };
  const milliseconds = parseDuration(duration);
  if (typeof milliseconds === 'string') throw new TypeError(`\`in\` ${milliseconds}`);
  if (milliseconds > LAST_INSTANT / 2) throw new RangeError('`in` must end before the year 6000');
  return { in: Math.round(milliseconds) };
}

function instantOf(value: Date | number, name: string): number {
  const instant = value instanceof Date ? value.getTime() : value;
  if (typeof instant !== 'number' || !(instant >= 0 && instant < LAST_INSTANT))
    throw new RangeError(`\`${name}\` must be a Date or epoch milliseconds, from 1970 to the year 9999`);
  return Math.ceil(instant);
}

/** The data of a deadline, as the type of its kind says. */
export type DeadlineData<T> = undefined extends T ? { readonly data?: T } : { readonly data: T };

/** When, with which data, and what happens to the deadline that waits under the same key. */
export type ScheduleOptions<T> = DeadlineTime &
  DeadlineData<T> & {
    /**
     * `'replace'`: the new one takes the place of the one that waits. `'keep'`: that stays. `'earlier'` and `'later'`:
     * the one that is due earlier, or later, stays. @default 'replace'
     */
    readonly ifExists?: IfScheduled;
  };

/** Which of the waiting deadlines `list()` returns. */
export interface ListOptions {
  /** Only those that are due before. @default all */
  readonly before?: Date | number;
  /** Only those behind this one, the last of the page before. @default all */
  readonly after?: { readonly key: string; readonly dueAt: number };
  /** 1 to 1000. @default 100 */
  readonly limit?: number;
}

const MOST_PER_CALL = 100;
const MOST_LISTED = 1000;

const STORE_MISSING =
  'It has no store: add RedisDeadlineModule.forRoot() of @nest-session/deadlines/redis to the imports of the root module, or MapDeadlineModule for a single process and for tests.';

/**
 * Schedules moments of your application under keys of your own: "order 42 is due in 15 minutes". `@OnDeadline` methods
 * hear of each when it comes. Inject it. A key is a text of 1 to 1,024 bytes; each kind has keys of its own. A call
 * that fails rejects with a SessionStoreError, and may still take effect; for arguments that cannot be meant it throws
 * a TypeError or RangeError.
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
    assertObject('The third argument', options);
    // Last: the options may be the body of a request.
    const keyed = { ...options, key } as ScheduleOptions<T> & { readonly key: string };
    const [outcome] = await this.scheduleMany(kind, [keyed]);
    return outcome!;
  }

  /**
   * Schedules many deadlines, each as `schedule()` does, in their order, and returns their outcomes. They are not one
   * step: when it rejects, any of them may be scheduled, and you can repeat the call.
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
      const call = () => this.#store.schedule(kind.name, batch, this.options.maxScheduled);
      const replies = await this.#traced('schedule', kind, call);
      if (replies.includes('full')) this.#refuse('maxScheduled', kind);
      outcomes.push(...(replies as ScheduleOutcome[]));
    }
    return outcomes;
  }

  /** Gives the deadline of a key another time. Its data and its `id` stay. */
  async reschedule(kind: Deadline<unknown>, key: string, time: DeadlineTime): Promise<RescheduleOutcome> {
    const due = dueOf(time);
    return this.#ofKey('reschedule', kind, key, () => this.#store.reschedule(kind.name, key, due));
  }

  /** Cancels the deadline of a key. In a race with its time, the answer says who was first. */
  async cancel(kind: Deadline<unknown>, key: string): Promise<CancelOutcome> {
    return this.#ofKey('cancel', kind, key, () => this.#store.cancel(kind.name, key));
  }

  /** The deadline that waits under a key. @throws DeadlineDataError where its data cannot be read */
  async get<T>(kind: Deadline<T>, key: string): Promise<ScheduledDeadline<T> | undefined> {
    const found = await this.#ofKey('get', kind, key, () => this.#store.get(kind.name, key));
    return found && this.#scheduled(kind, found);
  }

  /** How many of a kind wait. */
  async count(kind: Deadline<unknown>): Promise<number> {
    assertDeadline(kind);
    return this.#traced('count', kind, () => this.#store.count(kind.name));
  }

  /** A page of those that wait, in the order of their times. @throws DeadlineDataError where data cannot be read */
  async list<T>(kind: Deadline<T>, options: ListOptions = {}): Promise<ScheduledDeadline<T>[]> {
    assertDeadline(kind);
    assertObject('The second argument', options);
    const { before, after, limit = 100 } = options;
    if (!Number.isInteger(limit) || limit < 1 || limit > MOST_LISTED)
      throw new RangeError(`\`limit\` must be a whole number from 1 to ${MOST_LISTED}`);
    if (after !== undefined) {
      assertObject('`after`', after);
      assertKey(after.key);
      instantOf(after.dueAt, 'after.dueAt');
    }
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

  #ofKey<T>(operation: DeadlineContext['operation'], kind: Deadline<unknown>, key: string, call: () => Promise<T>) {
    assertDeadline(kind);
    assertKey(key);
    return this.#traced(operation, kind, call);
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
