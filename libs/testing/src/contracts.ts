// `@nest-session/testing/contracts`: the checks that your own store or SessionIdResolver must pass.
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
