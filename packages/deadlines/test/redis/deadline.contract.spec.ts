import { LeakGuard } from '@nest-session/test-infrastructure';
import { describeDeadlineContract } from '../support/deadline-contract.suite.js';
import { ServerPool } from '../../../session-redis/test/support/server-pool.js';

LeakGuard.install();

const servers = new ServerPool();
afterAll(() => servers.stop());

describeDeadlineContract('partitions: 1', async () => {
  const { url, release } = await servers.take();
  return { address: { url }, release };
});
