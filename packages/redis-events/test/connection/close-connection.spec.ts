import { jest } from '@jest/globals';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisCluster } from '@nest-session/testing';
import { Cluster } from 'ioredis';
import { closeConnection } from '../../src/connection/close-connection.js';

LeakGuard.install();

// Milliseconds. Nothing else has a timer of so many.
const INTERVAL = 137;

it('a client of a Cluster that is closed while it asks for the slots sets no timer any more', async () => {
  const cluster = await RedisCluster.start();
  const timers = jest.spyOn(globalThis, 'setTimeout');
  try {
    const rules = {
      slotsRefreshInterval: INTERVAL,
      slotsRefreshTimeout: 2000,
      redisOptions: { maxRetriesPerRequest: 0 },
    };
    const client = new Cluster(cluster.addresses, { ...rules, lazyConnect: true }).on('error', () => undefined);
    await client.connect();
    for (const node of cluster.nodes) node.freeze();
    // Private: whether it asks.
    const asks = () => (client as unknown as { isRefreshing: boolean }).isRefreshing;
    await eventually(() => expect(asks()).toBe(true));
    const closed = closeConnection(client);
    await eventually(() => expect(asks()).toBe(false), { timeout: 20_000 });
    for (const node of cluster.nodes) node.thaw();
    await closed;
    const ofInterval = timers.mock.calls.flatMap(([, ms], i) =>
      ms === INTERVAL ? [timers.mock.results[i]!.value] : [],
    );
    expect(ofInterval.length).toBeGreaterThan(0);
    // Private: whether it was cleared, or has fired.
    const waiting = ofInterval.filter((timer) => !(timer as { _destroyed: boolean })._destroyed);
    expect(waiting.length).toBe(0);
  } finally {
    timers.mockRestore();
    await cluster.stop();
  }
});
