import { describeSharedContract } from '../support/shared-contract.suite.js';

describeSharedContract('typed');
describeSharedContract('security');
