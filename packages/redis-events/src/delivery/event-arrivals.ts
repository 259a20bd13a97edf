import type { Redis } from 'ioredis';
import { closeConnection } from '../connection/close-connection.js';
import type { PartitionKeys } from '../partitions/partition-keys.js';
import { DuePartitions, type HeardSignals } from './due-partitions.js';

// Milliseconds. With one partition also how late a gap can be reported when no event follows it.
const LONGEST_WAIT = 1000;

/** Tells a reader outside of the groups in which partitions there may be events that it has not read. */
export abstract class EventArrivals {
  /**
   * Waits for such partitions, for a while. Perhaps none has one. `positions`: of the last event that was read.
   * `isFree`: whether a partition can be read now.
   */
  abstract wait(
    positions: ReadonlyMap<PartitionKeys, string>,
    isFree: (partition: PartitionKeys) => boolean,
  ): Promise<readonly PartitionKeys[]>;

  /** Ends a wait. */
  abstract wake(): void;

  /** Ends all waiting for good. */
  abstract close(): void;
}

/** Lets Redis wait for an event of the only partition. */
export class BlockingArrivals extends EventArrivals {
  #wake = (): void => undefined;

  /** `client`: blocks while it waits, so nothing else uses it. */
  constructor(
    private readonly client: Redis,
    private readonly partition: PartitionKeys,
  ) {
    super();
  }

  async wait(
    positions: ReadonlyMap<PartitionKeys, string>,
    isFree: (partition: PartitionKeys) => boolean,
  ): Promise<readonly PartitionKeys[]> {
    if (isFree(this.partition)) {
      const position = positions.get(this.partition)!;
      await this.client.xread('COUNT', 1, 'BLOCK', LONGEST_WAIT, 'STREAMS', this.partition.events, position);
    } else {
      // Its last read has had no reply yet, so nobody knows what to wait for.
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    return [this.partition];
  }

  /** Ends a wait for the reply of a read. Redis soon ends one for an event. */
  wake(): void {
    this.#wake();
  }

  close(): void {
    this.wake();
    void closeConnection(this.client);
  }
}

/** Goes by the signals of several partitions: no command waits for the events of two slots. */
export class SignalledArrivals extends EventArrivals {
  #isFree: (partition: PartitionKeys) => boolean = () => true;
  readonly #due: DuePartitions;

  constructor(signals: HeardSignals, partitions: readonly PartitionKeys[]) {
    super();
    this.#due = new DuePartitions(signals, partitions, (partition) => this.#isFree(partition));
  }

  async wait(
    _: ReadonlyMap<PartitionKeys, string>,
    isFree: (partition: PartitionKeys) => boolean,
  ): Promise<readonly PartitionKeys[]> {
    this.#isFree = isFree;
    await this.#due.wait(LONGEST_WAIT);
    return this.#due.take();
  }

  wake(): void {
    this.#due.wake();
  }

  close(): void {
    this.wake();
  }
}
