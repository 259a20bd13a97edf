import { describeSharedContract } from '../support/shared-contract.suite.js';

// `shared-variants.contract.chaos.ts` has the other two, and `spring-json.serializer.spec.ts` what distinguishes them.
describeSharedContract('plain');
