import type { SessionStoreOffer } from './contract.store.js';
import type { ContractContext } from './contract.context.js';

/** Each check by its title. */
export type Checks = Readonly<Record<string, (trial: ContractContext) => Promise<void>>>;

/** The checks of one part of the contract. */
export interface CheckGroup {
  readonly name: string;
  /** The part that a store has to offer for these checks, if any. */
  readonly needs?: SessionStoreOffer;
  readonly checks: Checks;
}
