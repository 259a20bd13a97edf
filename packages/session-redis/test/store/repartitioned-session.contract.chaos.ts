import { LeakGuard } from '@nest-session/test-infrastructure';
import { describeContract } from '../support/contract.suite.js';

LeakGuard.install();

describeContract({ from: 1, to: 4 });
describeContract({ from: 4, to: 1 });
describeContract({ from: 3, to: 2 });
