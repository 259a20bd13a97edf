// `@nest-session/test-infrastructure/deadlines`: what every store of deadlines must do.
export { deadlineContract } from './deadlines/deadline.contract.js';
export type {
  DeadlineContractOptions,
  DeadlineStoreOffer,
  DeadlineStoreUnderTest,
} from './deadlines/deadline-store-under-test.js';
