import { LeakGuard } from '@nest-session/test-infrastructure';
import { ContractRedis } from '../support/contract.redis.js';
import { describeContract } from '../support/contract.suite.js';
import { encryptionOf, keyOf } from '../support/encryption.fixture.js';

LeakGuard.install();

describeContract(4);
describeContract(1, { encryption: encryptionOf(keyOf('a')) });
describeContract(1, { expirations: ['sorted-set', 'sorted-set'] });
describeContract(4, { expirations: ['sorted-set', 'sorted-set'] });
describeContract(64, { expirations: ['sorted-set', 'sorted-set'], open: () => ContractRedis.openCluster() });
// During a switch.
describeContract(1, { expirations: ['buckets', 'sorted-set'] });
describeContract(4, { expirations: ['sorted-set', 'buckets'] });
