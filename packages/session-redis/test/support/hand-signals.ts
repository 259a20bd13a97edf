import type { PartitionSignals, Signal } from '../../../redis-events/src/connection/partition-signals.js';
import type { PartitionKeys } from '../../../redis-events/src/partitions/partitions.js';

type Heard = 'onSignal' | 'onConfirmation' | 'heardSince';

/** Signals of partitions that the test sends; no others are heard. */
export class HandSignals<Keys extends PartitionKeys = PartitionKeys> implements Pick<PartitionSignals<Keys>, Heard> {
  readonly #listeners: ((partition: Keys, signal: Signal) => void)[] = [];

  onSignal(listener: (partition: Keys, signal: Signal) => void): void {
    this.#listeners.push(listener);
  }

  onConfirmation(_listener: (partitions: readonly Keys[], since: number) => void): void {
    // There are none.
  }

  heardSince(_partition: Keys): number {
    return Infinity;
  }

  tell(partition: Keys, signal: Signal): void {
    for (const listener of this.#listeners) listener(partition, signal);
  }
}
