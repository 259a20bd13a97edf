import { Inject, Injectable } from '@nestjs/common';
import type { Clock } from '@nest-session/core/internal';
import type { AttributeSerializer } from '@nest-session/core';
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
import { type MapDeadlineModuleOptions, resolveMapDeadlineOptions } from './deadline.options.js';

export const MAP_DEADLINE_OPTIONS = Symbol('MAP_DEADLINE_OPTIONS');

/** The clock by which deadlines are due; `TestDeadlineModule` overrides it. */
export const MAP_DEADLINE_CLOCK = Symbol('MAP_DEADLINE_CLOCK');

interface WaitingDeadline extends StoredDeadline {
  readonly traceparent: string | undefined;
}

type Place = Pick<StoredDeadline, 'key' | 'dueAt'>;

/** The waiting deadlines of one name, in the order of their times, and then of their keys. */
class DeadlineQueue {
  readonly #byKey = new Map<string, WaitingDeadline>();
  readonly #inOrder: WaitingDeadline[] = [];

  get size(): number {
    return this.#inOrder.length;
  }

  get nextDue(): number {
    return this.#inOrder[0]?.dueAt ?? Infinity;
  }

  get(key: string): WaitingDeadline | undefined {
    return this.#byKey.get(key);
  }

  /** Adds a deadline in the place of the one with its key. */
  put(deadline: WaitingDeadline): void {
    this.remove(deadline.key);
    this.#byKey.set(deadline.key, deadline);
    this.#inOrder.splice(this.#indexFrom(deadline), 0, deadline);
  }

  /** False when none waits under the key. */
  remove(key: string): boolean {
    const deadline = this.#byKey.get(key);
    if (!deadline) return false;
    this.#byKey.delete(key);
    this.#inOrder.splice(this.#indexFrom(deadline), 1);
    return true;
  }

  takeDue(now: number): WaitingDeadline[] {
    const end = this.#inOrder.findIndex(({ dueAt }) => dueAt > now);
    const taken = this.#inOrder.splice(0, end < 0 ? this.size : end);
    for (const { key } of taken) this.#byKey.delete(key);
    return taken;
  }

  page({ before = Infinity, after, limit }: DeadlinePage): WaitingDeadline[] {
    const from = after ? this.#indexFrom(after) : 0;
    // The one that the last page ended with may be gone meanwhile.
    const first = after && this.#inOrder[from] && compare(this.#inOrder[from], after) === 0 ? from + 1 : from;
    return this.#inOrder.slice(first, first + limit).filter(({ dueAt }) => dueAt < before);
  }

  /** The index of the first one that does not come before a place. */
  #indexFrom(place: Place): number {
    let [low, high] = [0, this.#inOrder.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compare(this.#inOrder[middle]!, place) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function compare(one: Place, other: Place): number {
  if (one.dueAt !== other.dueAt) return one.dueAt - other.dueAt;
  if (one.key === other.key) return 0;
  return one.key < other.key ? -1 : 1;
}

export interface FiredDeadline extends WaitingDeadline {
  readonly name: string;
  readonly at: number;
}

/** The deadlines of `MapDeadlineModule`. Each step is synchronous, hence atomic. */
@Injectable()
export class MapDeadlineStore extends DeadlineStore {
  override readonly namespace = '';
  override readonly serializer: AttributeSerializer;
  readonly #waiting = new Map<string, DeadlineQueue>();
  /** When they fired, by name and key, in the order in which they did. */
  readonly #fired = new Map<string, number>();
  #scheduled: () => void = () => undefined;

  constructor(
    @Inject(MAP_DEADLINE_OPTIONS) options: MapDeadlineModuleOptions,
    @Inject(MAP_DEADLINE_CLOCK) private readonly clock: Clock,
  ) {
    super();
    this.serializer = resolveMapDeadlineOptions(options).serializer;
  }

  /** Calls a listener after a deadline was scheduled or given another time. */
  onScheduled(listener: () => void): void {
    this.#scheduled = listener;
  }

  async schedule(name: string, deadlines: readonly NewDeadline[], most: number): Promise<ScheduleReply[]> {
    const replies = deadlines.map((each) => this.#schedule(name, each, most));
    this.#scheduled();
    return replies;
  }

  async reschedule(name: string, key: string, due: Due): Promise<RescheduleOutcome> {
    const waiting = this.#of(name).get(key);
    if (!waiting) return this.#hasFired(name, key) ? 'fired' : 'none';
    this.#of(name).put({ ...waiting, dueAt: dueAtOf(due, this.clock.now()) });
    this.#scheduled();
    return 'moved';
  }

  async cancel(name: string, key: string): Promise<CancelOutcome> {
    if (this.#of(name).remove(key)) return 'cancelled';
    return this.#hasFired(name, key) ? 'fired' : 'none';
  }

  async get(name: string, key: string): Promise<StoredDeadline | undefined> {
    return this.#of(name).get(key);
  }

  async count(name: string): Promise<number> {
    return this.#of(name).size;
  }

  async list(name: string, page: DeadlinePage): Promise<StoredDeadline[]> {
    return this.#of(name).page(page);
  }

  /** When the next one of these names is due; Infinity when none waits. */
  nextDue(names: readonly string[]): number {
    return Math.min(...names.map((name) => this.#of(name).nextDue));
  }

  /** Fires what is due of these names: removes it, and returns it in the order of the times. */
  takeDue(names: readonly string[]): FiredDeadline[] {
    const at = this.clock.now();
    const takenOf = (name: string) => this.#of(name).takeDue(at);
    const taken = names.flatMap((name) => takenOf(name).map((each) => ({ ...each, name, at })));
    for (const { name, key } of taken) this.#fired.set(firedKey(name, key), at);
    for (const [key, firedAt] of this.#fired) {
      if (firedAt > at - FIRED_KNOWN_FOR) break;
      this.#fired.delete(key);
    }
    return taken.toSorted((one, other) => one.dueAt - other.dueAt);
  }

  #schedule(name: string, { due, ifExists, ...deadline }: NewDeadline, most: number): ScheduleReply {
    const list = this.#of(name);
    const waiting = list.get(deadline.key);
    const now = this.clock.now();
    const dueAt = dueAtOf(due, now);
    if (waiting && stays(waiting, dueAt, ifExists)) return 'kept';
    if (!waiting && list.size >= most) return 'full';
    list.put({ ...deadline, dueAt, scheduledAt: now, traceparent: deadline.traceparent });
    this.#fired.delete(firedKey(name, deadline.key));
    return waiting ? 'replaced' : 'scheduled';
  }

  #of(name: string): DeadlineQueue {
    let list = this.#waiting.get(name);
    if (!list) this.#waiting.set(name, (list = new DeadlineQueue()));
    return list;
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
