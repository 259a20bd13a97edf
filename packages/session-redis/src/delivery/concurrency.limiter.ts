import { EventEmitter, once } from 'node:events';
import { nameOf, type StreamEntry } from './stream-entry.js';

const FREED = 'freed';

interface Handling {
  readonly entry: StreamEntry;
  readonly isRetry: boolean;
  readonly work: Promise<void>;
}

/** What an instance handles at present, a limited number of entries at a time. */
export class ConcurrencyLimiter {
  readonly #running = new Map<string, Handling>();
  readonly #emitter = new EventEmitter();

  constructor(private readonly size: number) {}

  /** The entries that are being handled. */
  get entries(): StreamEntry[] {
    return [...this.#running.values()].map(({ entry }) => entry);
  }

  get free(): number {
    return Math.max(0, this.size - this.#running.size);
  }

  /** How many entries more may be handled again: the rest is for those that nobody has handled yet. */
  get freeForRetries(): number {
    const share = Math.max(1, Math.floor(this.size / 4));
    const taken = [...this.#running.values()].filter(({ isRetry }) => isRetry).length;
    return Math.min(this.free, share - taken);
  }

  has(entry: StreamEntry): boolean {
    return this.#running.has(nameOf(entry));
  }

  /** Resolves when something is free; rejects when the signal is aborted before. */
  async untilFree(signal: AbortSignal): Promise<void> {
    while (this.free === 0) await once(this.#emitter, FREED, { signal });
  }

  /** Resolves when nothing is being handled. */
  async untilIdle(): Promise<void> {
    await Promise.all([...this.#running.values()].map(({ work }) => work));
  }

  /** `handle` never rejects. */
  begin(entry: StreamEntry, isRetry: boolean, handle: () => Promise<void>): void {
    const name = nameOf(entry);
    const work = handle().finally(() => {
      this.#running.delete(name);
      this.#emitter.emit(FREED);
    });
    this.#running.set(name, { entry, isRetry, work });
  }
}
