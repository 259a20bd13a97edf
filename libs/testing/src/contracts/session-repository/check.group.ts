import type { SessionStoreOffer } from './contract.store.js';
import type { ContractContext } from './contract.context.js';

/** Each check by the sentence that it makes true. */
export type Checks = Readonly<Record<string, (trial: ContractContext) => Promise<void>>>;

/** The checks of one part of the contract. */
export interface CheckGroup {
  readonly name: string;
  /** What only some stores offer, if it is about that. */
  readonly needs?: SessionStoreOffer;
  readonly checks: Checks;
}
