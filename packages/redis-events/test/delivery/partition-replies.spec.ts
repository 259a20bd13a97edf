import { PartitionReplies } from '../../src/delivery/partition-turns.js';
import { SessionPartitions } from '../../../session-redis/src/keys/session-partitions.js';

const { all } = new SessionPartitions('nest:session', 4);

it('waits a shorter time for more partitions while one has not replied', async () => {
  let late = 0;
  const replies = new PartitionReplies<string>(() => late++);
  let reply!: (text: string) => void;
  const duration = async (partition: number) => {
    const began = performance.now();
    await replies.round([all[partition]!], () => new Promise((resolve) => (reply = resolve)));
    return performance.now() - began;
  };
  const [first, second] = [await duration(0), await duration(1)];
  expect(second).toBeLessThan(first / 2);
  reply('late');
  await Promise.resolve();
  await replies.round([all[2]!], () => Promise.resolve('at once'));
  // Somebody waits for those that come after their round.
  expect(late).toBe(1);
  expect(replies.take()).toEqual(['late', 'at once']);
  expect(all.map(replies.isFree)).toEqual([false, true, true, true]);
});
