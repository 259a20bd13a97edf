import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

interface Collection {
  readonly origin: string;
  readonly entries: WeakRef<{ readonly size: number }>;
}

interface Adder {
  // Any method that adds an entry.
  add(this: object, ...entry: unknown[]): unknown;
}

/** The frames between a call of `set` or `add` and what takes the trace. */
const OWN_FRAMES = /[\\/]kept-entries\.[jt]s/;
const OF_A_PACKAGE = /[\\/]packages[\\/][^\\/]+[\\/]src[\\/]/;

/**
 * Counts the entries in all Maps and Sets that the sources of the packages fill: no other instrument sees an entry that
 * outlives its purpose. It costs time with each new collection, so keep it out of measurements.
 */
export class KeptEntries {
  readonly #seen = new WeakSet();
  readonly #collections: Collection[] = [];
  readonly #restore: (() => void)[];

  /** Watches what is filled from now on, until `stop()`. */
  constructor() {
    this.#restore = [this.#watch(Map.prototype, 'set'), this.#watch(Set.prototype, 'add')];
  }

  stop(): void {
    for (const restore of this.#restore) restore();
  }

  /** The number of entries, by the place in the source where the first entry was added. */
  counts(): ReadonlyMap<string, number> {
    collectGarbage();
    const counts: Record<string, number> = {};
    for (const { origin, entries } of this.#collections) {
      counts[origin] = (counts[origin] ?? 0) + (entries.deref()?.size ?? 0);
    }
    return new Map(Object.entries(counts).filter(([, count]) => count > 0));
  }

  /** Where there are more entries than there were and `most` further ones, with the two numbers. */
  grownSince(before: ReadonlyMap<string, number>, most = 0): string[] {
    const grown = [...this.counts()].filter(([origin, count]) => count > (before.get(origin) ?? 0) + most);
    return grown.map(([origin, count]) => `${before.get(origin) ?? 0} -> ${count} entries: ${origin}`);
  }

  #watch(prototype: object, name: 'set' | 'add'): () => void {
    const methods = prototype as Record<typeof name, Adder['add']>;
    const add = methods[name];
    const note = (collection: object) => this.#note(collection);
    methods[name] = function (...entry) {
      note(this);
      return add.apply(this, entry);
    };
    return () => {
      methods[name] = add;
    };
  }

  #note(collection: object): void {
    if (this.#seen.has(collection)) return;
    this.#seen.add(collection);
    const frames = (new Error().stack ?? '').split('\n').slice(1);
    const [caller = ''] = frames.filter((frame) => !OWN_FRAMES.test(frame) && !frame.includes('(<anonymous>)'));
    if (!OF_A_PACKAGE.test(caller)) return;
    const origin = caller.trim().replace(/^at /, '');
    this.#collections.push({ origin, entries: new WeakRef(collection as { readonly size: number }) });
  }
}

/** So that only what is still reachable is counted. */
function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
}
