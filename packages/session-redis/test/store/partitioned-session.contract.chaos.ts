import { LeakGuard } from '@nest-session/test-infrastructure';
import { describeContract } from '../support/contract.suite.js';
import { encryptionOf, keyOf } from '../support/encryption.fixture.js';

LeakGuard.install();

// All that a store can have besides. `session-variants.contract.chaos.ts` has each by itself.
describeContract(4, { encryption: encryptionOf(keyOf('a')), expirations: ['sorted-set', 'sorted-set'] });
