import type { DeadlineStoreOffer } from './deadline-store-under-test.js';
import type { DeadlineTrial } from './deadline-trial.js';

/** The checks of one part of the contract, by their titles. */
export interface DeadlineCheckGroup {
  readonly name: string;
  /** What a store has to offer for these checks, if anything. */
  readonly needs?: DeadlineStoreOffer;
  readonly checks: Readonly<Record<string, (trial: DeadlineTrial) => Promise<void>>>;
}
