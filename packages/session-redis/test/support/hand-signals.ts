import type { PartitionSignals, Signal } from '../../src/connection/partition-signals.js';
import type { SessionKeys } from '../../src/keys/session-keys.js';

/** Signals of partitions that the test sends; no others are heard. */
export class HandSignals implements Pick<PartitionSignals, 'onSignal' | 'onConfirmation' | 'heardSince'> {
  readonly #listeners: ((partition: SessionKeys, signal: Signal) => void)[] = [];

  onSignal(listener: (partition: SessionKeys, signal: Signal) => void): void {
    this.#listeners.push(listener);
  }

  onConfirmation(_listener: (partitions: readonly SessionKeys[], since: number) => void): void {
    // There are none.
  }

  heardSince(_partition: SessionKeys): number {
    return Infinity;
  }

  tell(partition: SessionKeys, signal: Signal): void {
    for (const listener of this.#listeners) listener(partition, signal);
  }
}
