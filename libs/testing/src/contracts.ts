// `@nest-session/testing/contracts`: what must be true of a store, or of a SessionIdResolver, of your own.
export {
  sessionIdResolverContract,
  type SessionIdResolverContractOptions,
} from './contracts/session-id-resolver.contract.js';
export { sessionRepositoryContract } from './contracts/session-repository.contract.js';
export type {
  ContractStore,
  SessionRepositoryContractOptions,
  SessionStoreOffer,
} from './contracts/session-repository/contract.store.js';
export { type ContractCheck, registerChecks, type TestRunner } from './contracts/contract.check.js';
