import { LeakGuard } from '@nest-session/test-infrastructure';
import { describeSessions } from './concurrent-requests.js';
import { ModelledRedisStore } from './modelled.store.js';

LeakGuard.install();

describeSessions(2000, [
  { name: 'a Redis Cluster with eight partitions', open: (turns) => ModelledRedisStore.openCluster(turns, 8) },
]);
