import { KeyspaceNotificationListener } from '@nest-session/redis-events';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisCluster } from '@nest-session/testing';
import { Cluster } from 'ioredis';
import { EventsInstance } from '../support/events.instance.js';

LeakGuard.install();

const PATIENCE = { timeout: 60_000, interval: 50 };

it('on a Cluster, two instances share a group, one that comes back gets what was missed, and keys are heard', async () => {
  const cluster = await RedisCluster.start();
  const nodes = cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port }));
  const running: EventsInstance[] = [];
  const start = async (handles: string[], events = {}) => {
    const instance = await EventsInstance.start({
      events: { cluster: { nodes }, ...events },
      handles,
      hears: ['sold'],
    });
    running.push(instance);
    return instance;
  };
  const client = new Cluster(nodes);
  try {
    const sender = await start([]);
    const receivers = [await start(['paid']), await start(['paid'])];
    const ids = await Promise.all(Array.from({ length: 300 }, (_, i) => sender.events.record('paid', i)));
    const handled = () => receivers.flatMap((each) => each.ids).toSorted();
    await eventually(() => expect(handled()).toEqual(ids.toSorted()), PATIENCE);

    for (const each of receivers) await each.stop();
    running.splice(1);
    const missed = await Promise.all(Array.from({ length: 100 }, (_, i) => sender.events.record('paid', i)));
    await sender.trim();
    const streams = await Promise.all(
      cluster.nodes.map((_, i) => client.nodes('master')[i]!.keys('nest:events:{*}:events')),
    );
    expect(streams.map((each) => each.length > 10)).toEqual([true, true, true]);
    const back = await start(['paid']);
    back.failures = 1;
    await eventually(() => expect(back.ids.toSorted()).toEqual(missed.toSorted()), PATIENCE);
    await eventually(
      async () => expect(await sender.groups.list()).toMatchObject([{ lag: 0, pending: 0, retrying: 0 }]),
      PATIENCE,
    );

    await sender.events.record('sold');
    await eventually(() => expect([sender.heard.length, back.heard.length]).toEqual([1, 1]), PATIENCE);

    const listener = sender.nest.get(KeyspaceNotificationListener);
    const heard = new Set<string>();
    listener.listen({ events: 'expired', keys: 'seat:*', handler: ({ key }) => void heard.add(key) });
    await eventually(() => expect(listener.health.state).toBe('listening'), PATIENCE);
    const seats = Array.from({ length: 30 }, (_, i) => `seat:${i}`);
    await Promise.all(seats.map((seat) => client.set(seat, '', 'PX', 10)));
    await eventually(async () => {
      await Promise.all(seats.map((seat) => client.exists(seat)));
      expect([...heard].toSorted()).toEqual(seats.toSorted());
    }, PATIENCE);
  } finally {
    await Promise.all(running.map((each) => each.stop()));
    client.disconnect();
    await Promise.all(cluster.nodes.map((node) => node.stop()));
  }
});

it('on a Cluster, a poison event becomes a dead letter and is replayed', async () => {
  const cluster = await RedisCluster.start();
  const nodes = cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port }));
  const instance = await EventsInstance.start({
    events: { cluster: { nodes }, partitions: 8, events: { attempts: 2 } },
    handles: ['paid'],
  });
  try {
    instance.failures = 2;
    const id = await instance.events.record('paid', 'poison');
    const [letter] = await eventually(async () => {
      const found = await instance.groups.deadLetters();
      expect(found).toHaveLength(1);
      return found;
    }, PATIENCE);
    expect(letter!.event).toMatchObject({ id, data: 'poison' });
    expect(await instance.groups.replayAll()).toBe(1);
    await eventually(() => expect(instance.ids).toEqual([id]), PATIENCE);
  } finally {
    await instance.stop();
    await Promise.all(cluster.nodes.map((node) => node.stop()));
  }
});
