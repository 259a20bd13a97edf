import { RedisSessionModule, type RedisSessionModuleOptions } from '@nest-session/redis';
import { LeakGuard, SteppableRedisCluster, SteppableRedisServer } from '@nest-session/test-infrastructure';
import { describeAttacks } from '../../../session-core/test/device/attacks.suite.js';
import { devicesOn } from '../../../session-core/test/device/device.app.js';
import { describeBoundSessions } from '../../../session-core/test/device/device-bound.suite.js';
import { describeDeviceEndpoints } from '../../../session-core/test/device/device-endpoints.suite.js';
import { describeFailureTable } from '../../../session-core/test/device/failure-table.suite.js';
import { describeThefts } from '../../../session-core/test/device/thefts.suite.js';
import { closeApps } from '../../../session-core/test/support/session.app.js';
import { PATIENCE } from '../support/patience.js';

LeakGuard.install();
afterEach(closeApps);

/** Its clock stands still but for what a test steps. */
interface Place {
  readonly server: Pick<SteppableRedisServer, 'stepClock' | 'stopClock' | 'stop'>;
  readonly redis: RedisSessionModuleOptions;
}

async function onRedis(): Promise<Place> {
  const server = await SteppableRedisServer.start();
  return { server, redis: { url: server.url } };
}

async function onCluster(): Promise<Place> {
  const server = await SteppableRedisCluster.start();
  return { server, redis: { cluster: { nodes: server.addresses }, partitions: 8 } };
}

describe.each([
  ['Redis', onRedis],
  ['a Redis Cluster', onCluster],
] as const)('in %s', (_, open) => {
  let place: Place;
  let stores = 0;
  beforeAll(async () => {
    place = await open();
    await place.server.stopClock();
  }, 120_000);
  afterAll(() => place.server.stop());

  const devices = devicesOn(() => ({
    module: RedisSessionModule.forRoot({
      ...place.redis,
      namespace: `store-${++stores}`,
      commandTimeout: PATIENCE,
    }),
    clock: { advance: (ms) => place.server.stepClock(ms) },
  }));
  describeFailureTable(devices);
  describeAttacks(devices);
  describeBoundSessions(devices);
  describeDeviceEndpoints(devices);
  describeThefts(devices);
});
