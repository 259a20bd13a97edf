import type { SessionStoreOffer } from './contract.store.js';
import type { Trial } from './trial.js';

/** Each check by the sentence that it makes true. */
export type Checks = Readonly<Record<string, (trial: Trial) => Promise<void>>>;

/** The checks of one part of the contract. */
export interface CheckGroup {
  readonly name: string;
  /** What only some stores offer, if it is about that. */
  readonly needs?: SessionStoreOffer;
  readonly checks: Checks;
}
