import { Logger } from '@nestjs/common';
import { KeyspaceNotificationListener } from '@nest-session/redis-events';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisCluster, type RedisServer } from '@nest-session/testing';
import slotOf from 'cluster-key-slot';
import { Redis } from 'ioredis';
import { resolveRedisSessionOptions } from '../../../session-redis/src/configuration/redis-session.options.js';
import { closeConnections, createConnections, type RedisConnections } from '../../src/connection/redis-connections.js';
import { ALL_RIGHTS } from '../../../session-redis/test/support/with-all-rights.js';

LeakGuard.install();
Logger.overrideLogger(false);

const LONG = 60_000;
const KEY = 'cart:1';
const SLOT = slotOf(KEY);
const SLOTS_OF_FIRST = 5461;

let cluster: RedisCluster;
let connections: RedisConnections;
let listener: KeyspaceNotificationListener;
beforeAll(async () => {
  cluster = await RedisCluster.start();
  await leaveOneSlot(cluster.nodes);
  connections = createConnections(resolveRedisSessionOptions({ cluster: { nodes: cluster.addresses }, ...ALL_RIGHTS }));
  const { notifications, background } = connections;
  listener = new KeyspaceNotificationListener(notifications, background, { heartbeat: 50, probe: 100 });
  listener.start();
}, LONG);
afterAll(async () => {
  await listener.stop();
  await closeConnections(connections);
  await cluster.stop();
});

/** Gives all slots of the first node but one to the last one, at once: there are no keys. */
async function leaveOneSlot(nodes: readonly RedisServer[]): Promise<void> {
  let owner: string | undefined;
  // The last one first. It has the latest epoch, so the others believe it.
  for (const { url } of nodes.toReversed()) {
    const client = new Redis(url);
    owner ??= String(await client.cluster('MYID'));
    const pipeline = client.pipeline();
    for (let slot = 0; slot < SLOTS_OF_FIRST; slot++) {
      if (slot !== SLOT) pipeline.cluster('SETSLOT', slot, 'NODE', owner);
    }
    await pipeline.exec();
    client.disconnect();
  }
  await cluster.untilStable();
}

it(
  'a listener forgets a node that has no keys any more, each time, and listens to it when it has some again',
  async () => {
    const heard: string[] = [];
    const listen = () => listener.listen({ keys: 'cart:*', events: 'set', handler: ({ key }) => void heard.push(key) });
    const subscription = listen();
    const [first, , last] = cluster.nodes as [RedisServer, RedisServer, RedisServer];
    const clients = new Map([first, last].map((node) => [node, new Redis(node.url)]));
    const isHeardFrom = async (node: RedisServer, nodes: number) => {
      await eventually(() => {
        connections.notifications.refresh();
        expect([...connections.notifications.all]).toHaveLength(nodes);
      });
      await eventually(() => expect(subscription.health.state).toBe('listening'));
      const later = listen();
      await eventually(() => expect(later.health.state).toBe('listening'));
      heard.length = 0;
      await clients.get(node)!.set(KEY, 'x');
      await eventually(() => expect(heard).toEqual([KEY, KEY]));
      await later.close();
    };
    try {
      await isHeardFrom(first, 3);
      for (let round = 1; round <= 2; round++) {
        await cluster.moveSlots([SLOT], last);
        await isHeardFrom(last, 2);
        await cluster.moveSlots([SLOT], first);
        await isHeardFrom(first, 3);
      }
    } finally {
      // Otherwise they try to connect while the next test files of this process run.
      for (const client of clients.values()) client.disconnect();
    }
  },
  LONG,
);
