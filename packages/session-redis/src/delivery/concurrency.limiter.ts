import { EventEmitter, once } from 'node:events';
import { nameOf, type StreamEntry } from './stream-entry.js';

const FREED = 'freed';

interface Handling {
  readonly entry: StreamEntry;
  readonly isRetry: boolean;
  readonly work: Promise<void>;
}

/** The entries that an instance handles now, up to a limit. */
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

  /** How many retries may begin: a quarter of the places, so that failing events leave room for new ones. */
  get freeForRetries(): number {
    const share = Math.max(1, Math.floor(this.size / 4));
    const retries = [...this.#running.values()].filter(({ isRetry }) => isRetry).length;
    return Math.min(this.free, share - retries);
  }

  has(entry: StreamEntry): boolean {
    return this.#running.has(nameOf(entry));
  }

  /** Resolves when a place is free; rejects when the signal is aborted before. */
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
