import type { SessionKeys } from '../keys/session-keys.js';
import type { SweepCounter } from './sweep.counter.js';

/** Options of `SessionExpirationSweeper.runOnce()`. */
export interface SweepOptions {
  /**
   * Also look at sessions that are due up to this many milliseconds in the future. Harmless: a live session stays alive.
   * @default 0
   */
  readonly ahead?: number;
  /** Ends the pass before its next batch. The next pass finds the rest. */
  readonly signal?: AbortSignal;
}

/**
 * Where it is noted which session ends when: the buckets, or the sorted set. A session is in one of them, and its session
 * hash tells in which. The scripts know both, so that instances may write to either at the same time; the option
 * `expirations` says to which one.
 */
export interface SessionExpirationStore {
  /** One pass over what is due in some partitions, which are all on one node. A batch that fails is counted. */
  sweep(partitions: readonly SessionKeys[], tally: SweepCounter, options: SweepOptions): Promise<void>;
}
