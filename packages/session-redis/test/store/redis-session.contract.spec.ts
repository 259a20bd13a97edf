import { LeakGuard } from '@nest-session/test-infrastructure';
import { describeContract } from '../support/contract.suite.js';

LeakGuard.install();

describeContract(1);
