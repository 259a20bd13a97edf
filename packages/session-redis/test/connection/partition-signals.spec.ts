import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { PartitionSignals } from '../../src/connection/partition-signals.js';
import { SingleNode } from '../../src/connection/single-node.js';
import { SessionPartitions } from '../../src/keys/session-partitions.js';

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
