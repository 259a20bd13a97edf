import { LeakGuard } from '@nest-session/test-infrastructure';
import { describeContract } from '../support/contract.suite.js';
import { encryptionOf, keyOf } from '../support/encryption.fixture.js';

LeakGuard.install();

describeContract(1);
describeContract(1, { encryption: encryptionOf(keyOf('a')) });
