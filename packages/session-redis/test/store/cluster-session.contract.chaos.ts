import { LeakGuard } from '@nest-session/test-infrastructure';
import { ContractRedis } from '../support/contract.redis.js';
import { describeContract } from '../support/contract.suite.js';

LeakGuard.install();

describeContract(64, { open: () => ContractRedis.openCluster() });
