import type { PartitionKeys } from '../partitions/partition-keys.js';
import type { SweepCounter } from './sweep.counter.js';

/** How a pass looks for what is due. */
export interface SweepOptions {
  /**
   * Also look at what is due up to this many milliseconds in the future. Harmless: what is not due yet stays as it is.
   * @default 0
   */
  readonly ahead?: number;
  /** Ends the pass before its next batch. The next pass finds the rest. */
  readonly signal?: AbortSignal;
}

/** Finds what is due in partitions, and claims it: each claim records an event. */
export abstract class DueSweeper<Keys extends PartitionKeys = PartitionKeys> {
  /** What it finds, as log lines say it: 'sessions'. */
  abstract readonly what: string;

  /** Whether our own lists do not have all that is due, so that it looks at every tick. @default false */
  readonly looksElsewhere?: boolean;

  /** One pass over some partitions, which are all on one node. A batch that fails is counted. */
  abstract sweep(partitions: readonly Keys[], tally: SweepCounter, options: SweepOptions): Promise<void>;
}

/** What is due in a partition, in the order in which it becomes due. */
export interface DueList<Keys extends PartitionKeys = PartitionKeys> {
  /**
   * Claims what is due now. Resolves to the milliseconds until the earliest one that is left is due; undefined when
   * there is none, or the pass was aborted.
   */
  claimIn(partition: Keys, tally: SweepCounter, options: SweepOptions): Promise<number | undefined>;
}
