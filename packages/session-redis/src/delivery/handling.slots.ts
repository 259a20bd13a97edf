import { EventEmitter, once } from 'node:events';

const FREED = 'freed';

/** What an instance handles at present, a limited number of entries at a time. */
export class HandlingSlots {
  readonly #running = new Map<string, { readonly work: Promise<void>; readonly isRetry: boolean }>();
  readonly #emitter = new EventEmitter();

  constructor(private readonly size: number) {}

  /** The positions of the entries that are being handled. */
  get positions(): string[] {
    return [...this.#running.keys()];
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

  has(position: string): boolean {
    return this.#running.has(position);
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
  begin(position: string, isRetry: boolean, handle: () => Promise<void>): void {
    const work = handle().finally(() => {
      this.#running.delete(position);
      this.#emitter.emit(FREED);
    });
    this.#running.set(position, { work, isRetry });
  }
}
