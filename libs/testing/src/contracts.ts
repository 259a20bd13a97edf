// `@nest-session/testing/contracts`: the checks that your own store, SessionIdResolver or timer must pass.
export {
  sessionIdResolverContract,
  type SessionIdResolverContractOptions,
} from './contracts/session-id-resolver.contract.js';
export {
  type ContractTimer,
  sessionTimerContract,
  type SessionTimerContractOptions,
  type TimerServer,
} from './contracts/session-timer.contract.js';
export { sessionRepositoryContract } from './contracts/session-repository.contract.js';
export type {
  ContractStore,
  SessionRepositoryContractOptions,
  SessionStoreOffer,
} from './contracts/session-repository/contract.store.js';
export { type ContractCheck, registerChecks, type TestRunner } from './contracts/contract.check.js';
