import type { Clock } from '@nest-session/core/internal';
import {
  type CancelReply,
  type DeadlinePage,
  DeadlineStore,
  type Due,
  FIRED_KNOWN_FOR,
  type IfScheduled,
  type NewDeadline,
  type RescheduleReply,
  type ScheduleReply,
  type StoredDeadline,
} from './deadline.store.js';
import { DeadlineQueue, type WaitingDeadline } from './deadline.queue.js';

/** A deadline that has come. */
export interface FiredDeadline extends WaitingDeadline {
  readonly name: string;
  /** When it was found to be due. */
  readonly at: number;
}

/** The deadlines of `MapDeadlineModule`. Each step is synchronous, hence atomic. */
export class MapDeadlineStore extends DeadlineStore {
  override readonly namespace = '';
  readonly #waiting = new Map<string, DeadlineQueue>();
  /** When they fired, by name and key, in the order in which they did. */
  readonly #fired = new Map<string, number>();
  #scheduled: () => void = () => undefined;

  constructor(
    override readonly serializer: DeadlineStore['serializer'],
    private readonly clock: Clock,
  ) {
    super();
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

  async reschedule(name: string, key: string, due: Due): Promise<RescheduleReply> {
    const waiting = this.#of(name).get(key);
    if (!waiting) return this.#hasFired(name, key) ? 'fired' : 'none';
    this.#of(name).put({ ...waiting, dueAt: dueAtOf(due, this.clock.now()) });
    this.#scheduled();
    return 'moved';
  }

  async cancel(name: string, key: string): Promise<CancelReply> {
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

  /**
   * Removes the deadlines of these names that are due, and returns them in the order of their times: they have fired.
   */
  takeDue(names: readonly string[]): FiredDeadline[] {
    const at = this.clock.now();
    const taken = names.flatMap((name) =>
      this.#of(name)
        .takeDue(at)
        .map((each) => ({ ...each, name, at })),
    );
    for (const { name, key } of taken) this.#fired.set(firedKey(name, key), at);
    this.#forgetFired(at);
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

  #forgetFired(now: number): void {
    for (const [key, at] of this.#fired) {
      if (at > now - FIRED_KNOWN_FOR) return;
      this.#fired.delete(key);
    }
  }
}

/** Whether the deadline that waits stays, and the new one does not take its place. */
function stays({ dueAt }: WaitingDeadline, newDueAt: number, ifExists: IfScheduled): boolean {
  switch (ifExists) {
    case 'replace':
      return false;
    case 'keep':
      return true;
    case 'earlier':
      return dueAt <= newDueAt;
    case 'later':
      return dueAt >= newDueAt;
  }
}

/** A name has no space. */
function firedKey(name: string, key: string): string {
  return `${name} ${key}`;
}

/** When a deadline is due, in epoch milliseconds. */
function dueAtOf(due: Due, now: number): number {
  return 'at' in due ? due.at : now + due.in;
}
