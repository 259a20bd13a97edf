import { EventEmitter, once } from 'node:events';
import { nameOf, type StreamEntry } from '../scripts/stream/stream-entry.js';

const FREED = 'freed';

// Milliseconds that an entry keeps its place while Redis does not reply.
const PATIENCE = 1000;

interface Handling {
  readonly entry: StreamEntry;
  readonly isRetry: boolean;
  work: Promise<void>;
  /** Since when it waits for replies of Redis, in monotonic time. Infinity: for its handlers, or a place. */
  asksSince: number;
}

/** The entries that an instance handles now. Those of a node that does not reply in time give up their places. */
export class ConcurrencyLimiter {
  readonly #running = new Map<string, Handling>();
  readonly #emitter = new EventEmitter();
  #placed = 0;
  readonly #waiting: (() => void)[] = [];
  readonly #patience: number;

  constructor(
    private readonly size: number,
    { hasOtherNodes = false } = {},
  ) {
    // Where all entries are on one node, it reads no more of them than it can acknowledge.
    this.#patience = hasOtherNodes ? PATIENCE : Infinity;
  }

  get entries(): StreamEntry[] {
    return [...this.#running.values()].map(({ entry }) => entry);
  }

  get free(): number {
    return Math.max(0, this.size - this.#holders().length);
  }

  /** How many retries may begin: a quarter of the places, so that failing events leave room for new ones. */
  get freeForRetries(): number {
    const share = Math.max(1, Math.floor(this.size / 4));
    const retries = this.#holders().filter(({ isRetry }) => isRetry).length;
    return Math.max(0, Math.min(this.free, share - retries));
  }

  has(entry: StreamEntry): boolean {
    return this.#running.has(nameOf(entry));
  }

  async untilFree(signal: AbortSignal): Promise<void> {
    while (this.free === 0) {
      // An entry whose node does not reply gives its place up silently.
      const look = setTimeout(() => this.#emitter.emit(FREED), PATIENCE);
      await once(this.#emitter, FREED, { signal }).finally(() => clearTimeout(look));
    }
  }

  async untilIdle(): Promise<void> {
    await Promise.all([...this.#running.values()].map(({ work }) => work));
  }

  /** `handle` calls the handlers by run(). It never rejects. */
  begin(entry: StreamEntry, isRetry: boolean, handle: () => Promise<void>): void {
    const name = nameOf(entry);
    const handling: Handling = { entry, isRetry, work: Promise.resolve(), asksSince: performance.now() };
    this.#running.set(name, handling);
    handling.work = handle().finally(() => {
      this.#running.delete(name);
      this.#emitter.emit(FREED);
    });
  }

  /** Calls the handlers of an entry that is being handled, when they have a place. */
  async run<T>(entry: StreamEntry, handlers: () => Promise<T>): Promise<T> {
    const handling = this.#running.get(nameOf(entry))!;
    handling.asksSince = Infinity;
    if (this.#placed < this.size) this.#placed++;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await handlers();
    } finally {
      handling.asksSince = performance.now();
      const next = this.#waiting.shift();
      if (next) next();
      else this.#placed--;
    }
  }

  /** The entries that have a place, or wait for one. */
  #holders(): Handling[] {
    const latest = performance.now() - this.#patience;
    return [...this.#running.values()].filter(({ asksSince }) => asksSince >= latest);
  }
}
