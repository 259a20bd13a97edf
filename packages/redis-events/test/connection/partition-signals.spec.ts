import { Logger } from '@nestjs/common';
import { LeakGuard, LogRecorder, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { PartitionSignals } from '../../src/connection/partition-signals.js';
import { type RedisNodes, SingleNode } from '../../src/connection/redis-nodes.js';
import { SessionPartitions } from '../../../session-redis/src/keys/session-partitions.js';

LeakGuard.install();

it('a lost subscription is noticed with the next heartbeat, and nothing is confirmed until it is made again', async () => {
  const server = await RedisServer.start();
  const client = new Redis(server.url, { lazyConnect: true, autoResubscribe: false });
  const partitions = new SessionPartitions('nest:session', 4);
  const signals = new PartitionSignals(new SingleNode(client), partitions);
  const missed: unknown[] = [];
  signals.onSignal((partition, signal) => signal === 'missed' && missed.push(partition));
  try {
    signals.start();
    await eventually(() => expect(missed).toHaveLength(partitions.all.length));
    const [lost] = partitions.all;
    const lostAt = performance.now();
    await client.sunsubscribe(lost!.events);
    const early: unknown[] = [];
    signals.onConfirmation((confirmed, since) => {
      if (confirmed.includes(lost!) && since < signals.heardSince(lost!)) early.push(since);
    });
    await eventually(() => expect(missed).toHaveLength(2 * partitions.all.length));
    expect(signals.heardSince(lost!)).toBeGreaterThan(lostAt);
    expect(early).toEqual([]);
    const asking = new Redis(server.url);
    const [, subscribers] = (await asking.call('PUBSUB', 'SHARDNUMSUB', lost!.events)) as [string, number];
    asking.disconnect();
    expect(subscribers).toBe(1);
  } finally {
    await signals.stop();
    await server.stop();
  }
});

it('a connection that is made anew subscribes where the one before might not, each time', async () => {
  const server = await RedisServer.start();
  const admin = new Redis(server.url);
  const log = new LogRecorder();
  Logger.overrideLogger(log);
  await admin.acl('SETUSER', 'app', 'on', 'nopass', '~*', '+@all', 'resetchannels');
  const client = new Redis(server.url, { username: 'app', password: 'any', lazyConnect: true, autoResubscribe: false });
  const partitions = new SessionPartitions('nest:session', 4);
  const signals = new PartitionSignals(new SingleNode(client), partitions);
  const warnings = () => log.matching(/cannot subscribe to the channels/);
  try {
    signals.start();
    for (let time = 1; time <= 2; time++) {
      await eventually(() => expect(warnings()).toHaveLength(time));
      await admin.acl('SETUSER', 'app', 'allchannels');
      client.disconnect(true);
      const heard = () => partitions.all.map((keys) => signals.heardSince(keys));
      await eventually(() => expect(Math.max(...heard())).toBeLessThan(Infinity));
      await admin.acl('SETUSER', 'app', 'resetchannels');
      client.disconnect(true);
    }
  } finally {
    await signals.stop();
    admin.disconnect();
    await server.stop();
  }
});

it('a subscription on a node that has lost the partition meanwhile does not count', async () => {
  const server = await RedisServer.start();
  const proxy = await TcpProxy.start({ port: server.port });
  const rules = { autoResubscribe: false };
  const [former, next] = [new Redis(proxy.url, rules), new Redis(server.url, rules)];
  await Promise.all([former.ping(), next.ping()]);
  let [owner, change] = [former, () => {}];
  const nodes = {
    of: () => owner,
    connect: async () => undefined,
    onOpen: (listener) => [former, next].forEach(listener),
    onChange: (listener) => (change = listener),
    refresh: () => undefined,
    close: async () => [former, next].forEach((client) => client.disconnect()),
  } as Partial<RedisNodes> as RedisNodes;
  const partitions = new SessionPartitions('nest:session', 4);
  const signals = new PartitionSignals(nodes, partitions);
  const missed: unknown[] = [];
  signals.onSignal((partition, signal) => signal === 'missed' && missed.push(partition));
  try {
    proxy.hold('reply');
    signals.start();
    await proxy.untilHeld('reply');
    owner = next;
    change();
    await eventually(() => expect(missed).toHaveLength(4));
    proxy.release('reply');
    await former.ping();
    expect(missed).toHaveLength(4);
    former.disconnect();
    await next.ping();
    expect(partitions.all.filter((keys) => signals.heardSince(keys) === Infinity)).toEqual([]);
  } finally {
    await signals.stop();
    await proxy.stop();
    await server.stop();
  }
});
