import { randomBytes } from 'node:crypto';
import slotOf from 'cluster-key-slot';
import { SessionPartitions } from '../../src/keys/session-partitions.js';

const SLOTS = 16_384;
const partitionsOf = (count?: number) => new SessionPartitions('nest:session', count);
const randomId = () => randomBytes(32).toString('base64url');

it('the keys of a single partition have no hash tag', () => {
  const partitions = partitionsOf();
  expect(partitions.all.map(({ prefix }) => prefix)).toEqual(['nest:session:']);
  expect(partitions.of(randomId())).toBe(partitions.all[0]);
  expect(partitions.shadows).toBe('nest:session:sessions:expires:*');
  expect(partitions.meta).toBe('nest:session:meta');
});

it('the hash tags of several partitions are fixed for all versions', () => {
  const { all, shadows, meta } = partitionsOf(4);
  const tags = ['0-0', '1-2', '2-0', '3-2'];
  expect(all.map(({ prefix }) => prefix)).toEqual(tags.map((tag) => `nest:session:{${tag}}:`));
  expect(shadows).toBe('nest:session:{*}:sessions:expires:*');
  expect(meta).toBe('nest:session:meta');
  expect(partitionsOf(64).all.at(-1)!.prefix).toBe('nest:session:{63-58}:');
  expect(partitionsOf(1024).all.at(-1)!.prefix).toBe('nest:session:{1023-229}:');
});

it.each([2, 3, 64, 1000])(
  'the slots of %d partitions are spread evenly, and the keys of each are in one slot',
  (count) => {
    const { all } = partitionsOf(count);
    const slots = all.map((keys) => {
      const names = [
        keys.session('x'),
        keys.shadow('y'),
        keys.forwardingMark('z'),
        keys.bucket('60000'),
        keys.index('a', 'b'),
      ];
      const [slot, ...others] = new Set(
        [...names, keys.bucketList, keys.events, keys.failing('g')].map((key) => slotOf(key)),
      );
      expect(others).toEqual([]);
      return slot!;
    });
    expect(slots.map((slot) => Math.floor((slot * count) / SLOTS))).toEqual(all.map((_, i) => i));
  },
);

it('sessions are spread evenly over partitions, for random and other ids', () => {
  for (const idOf of [randomId, (i: number) => `session-${String(i).padStart(30, '0')}`]) {
    const partitions = partitionsOf(16);
    const counts = new Map(partitions.all.map((keys) => [keys, 0]));
    for (let i = 0; i < 16_000; i++) {
      const keys = partitions.of(idOf(i));
      counts.set(keys, counts.get(keys)! + 1);
    }
    for (const count of counts.values()) {
      expect(count).toBeGreaterThan(800);
      expect(count).toBeLessThan(1200);
    }
  }
});

it.each([undefined, 4])('the id in a shadow key is read for its own partition only, with %s partitions', (count) => {
  const partitions = partitionsOf(count);
  for (let i = 0; i < 50; i++) {
    const id = randomId();
    expect(partitions.idOfShadow(partitions.of(id).shadow(id))).toBe(id);
    const elsewhere = partitions.all.filter((keys) => keys !== partitions.of(id));
    for (const keys of elsewhere) expect(partitions.idOfShadow(keys.shadow(id))).toBeUndefined();
  }
  const foreign = [
    '',
    'x',
    'other:sessions:expires:x',
    'nest:session:sessions:x',
    'nest:session:{9}:sessions:expires:x',
  ];
  for (const key of [...foreign, ...partitions.canaries.map((prefix) => `${prefix}x`)])
    expect(partitions.idOfShadow(key)).toBeUndefined();
});

it('each partition has the same share of a limit, and at least 1', () => {
  expect([partitionsOf(1), partitionsOf(4), partitionsOf(1000)].map((each) => each.shareOf(100))).toEqual([100, 25, 1]);
});
