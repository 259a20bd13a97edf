import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Objects that should become garbage, and which of them have not. */
export class Garbage {
  #watched: { readonly kind: string; readonly reference: WeakRef<object> }[] = [];
  #total = 0;

  watch(kind: string, object: object): void {
    this.#watched.push({ kind, reference: new WeakRef(object) });
    this.#total++;
  }

  /** How many have been watched. */
  get total(): number {
    return this.#total;
  }

  /** How many of each kind are still reachable, after a collection. */
  async left(): Promise<Record<string, number>> {
    // Objects that were created or read in this turn are reachable until its end.
    await nextTurn();
    collect();
    this.#watched = this.#watched.filter(({ reference }) => reference.deref() !== undefined);
    const counts: Record<string, number> = {};
    for (const { kind } of this.#watched) counts[kind] = (counts[kind] ?? 0) + 1;
    return counts;
  }
}
