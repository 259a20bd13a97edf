import { moveExpirations } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import type { ExpirationStoreName } from '../../src/configuration/expirations.options.js';
import { hashOfValue } from '../support/hash-of-value.js';
import { expectAlike, wholeContent } from '../support/store.dump.js';
import { MINUTE, Store } from '../support/store.fixture.js';

LeakGuard.install();

// `move-expirations.e2e-spec.ts` has the command.
describe.each([
  [1, 'buckets', 'sorted-set'],
  [4, 'buckets', 'sorted-set'],
  [4, 'sorted-set', 'buckets'],
] as const)('the ends of sessions in %d partitions, from the %s to the %s', (partitions, from, to) => {
  let store: Store;
  beforeAll(async () => {
    store = await Store.open({ partitions, expirations: from });
    await store.client.hset(store.partitions.meta, { version: '3', partitions, holds: 'sessions' });
  });
  afterAll(() => store.close());

  const move = (expirations: ExpirationStoreName, signal?: AbortSignal) =>
    moveExpirations({ url: store.server.url, partitions, expirations }, signal && { signal });

  /** Live sessions with an end. */
  async function fill(count: number): Promise<string[]> {
    const ids: string[] = [];
    for (let i = 0; i < count; i++) {
      const id = await store.create({ cart: '"apple"' }, { interval: 600 + 40 * i, principal: hashOfValue('ann') });
      const newId = store.id(id);
      await store.save(id, { newId, keepsIdle: true });
      ids.push(newId);
    }
    return ids;
  }

  it('change alone when they move, and are as they were when they have moved back', async () => {
    const ids = await fill(40);
    await store.create({}, { interval: -1 });
    await store.scripts.delete(await store.create());
    const before = await wholeContent(store.client, [store.partitions.meta]);
    // One that was interrupted does what it has not done.
    await expect(move(to, AbortSignal.abort(new Error('enough')))).rejects.toThrow('enough');
    expect(await move(to)).toEqual({ moved: ids.length, ended: 0, left: 0 });
    expect(await move(to)).toEqual({ moved: 0, ended: 0, left: 0 });
    for (const id of ids) {
      const end = await store.client.pexpiretime(store.keysOf(id).shadow(id));
      const [bucket, due] = [await store.buckets(id), await store.due(id)];
      const minute = `${Math.floor((end + MINUTE) / MINUTE) * MINUTE}`;
      expect([bucket, due]).toEqual(to === 'buckets' ? [[minute], null] : [[], `${end}`]);
    }
    expect(await move(from)).toEqual({ moved: ids.length, ended: 0, left: 0 });
    expectAlike(await wholeContent(store.client, [store.partitions.meta]), before);
  });
});
