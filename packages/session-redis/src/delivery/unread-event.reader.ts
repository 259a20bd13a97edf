import type { StreamEntry } from './stream-entry.js';

/** Reads new entries for a group. */
export abstract class UnreadEventReader {
  /** Up to `count` entries in recorded order. Waits up to `patience` milliseconds while no partition has one. */
  abstract read(count: number, patience: number): Promise<StreamEntry[]>;

  /** Ends all reading. Resolves when Redis executes no read of this instance any more. */
  abstract close(): Promise<void>;
}
