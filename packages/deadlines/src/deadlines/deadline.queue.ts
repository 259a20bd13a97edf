import type { DeadlinePage, StoredDeadline } from './deadline.store.js';

/** A deadline that waits in memory. */
export interface WaitingDeadline extends StoredDeadline {
  readonly traceparent: string | undefined;
}

type Place = Pick<StoredDeadline, 'key' | 'dueAt'>;

/** The waiting deadlines of one name, in the order of their times. Those of one time are in the order of their keys. */
export class DeadlineQueue {
  readonly #byKey = new Map<string, WaitingDeadline>();
  readonly #inOrder: WaitingDeadline[] = [];

  get size(): number {
    return this.#inOrder.length;
  }

  /** When the first one is due; Infinity when none waits. */
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

  /** Removes those that are due at an instant or before, and returns them. */
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
