import { PRINCIPAL_NAME_INDEX_NAME } from '@nest-session/core';
import type { SessionLimit } from '@nest-session/core/store';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { Store, updateOf } from '../support/store.fixture.js';

LeakGuard.install();

const ANN = 'ann';
const indexes = new Map([[PRINCIPAL_NAME_INDEX_NAME, ANN]]);

let store: Store;
beforeAll(async () => {
  store = await Store.open();
});
afterAll(() => store.close());
beforeEach(() => store.client.flushall());

const limitOf = (atMost: number, whenReached: SessionLimit['whenReached']) => ({ principal: ANN, atMost, whenReached });

async function signIn(limit?: SessionLimit) {
  const [id, times] = [store.id(), { maxInactiveInterval: 1800, absoluteTimeout: -1 }];
  const content = { ...times, attributes: new Map(), indexes, limit };
  const { outcome } = await store.scripts.create({ kind: 'create', id, presentedIds: [], ...content });
  return { id, outcome };
}

const listed = () => store.client.zcard(store.keys.index(PRINCIPAL_NAME_INDEX_NAME, ANN));

it('a session that the epoch ends, and that is not ended yet, does not count', async () => {
  const one = limitOf(1, 'refuse');
  const { id } = await signIn(one);
  expect(await signIn(one)).toMatchObject({ outcome: 'refused' });
  const at = await store.client.zscore(store.keys.index(PRINCIPAL_NAME_INDEX_NAME, ANN), id);
  // It began in the millisecond of the epoch.
  await store.client.hset(store.keys.epoch, 'at', at!);
  expect(await store.isAlive(id)).toBe(true);
  expect(await signIn(one)).toMatchObject({ outcome: 'created' });
});

it.each(['refuse', 'end-oldest'] as const)('a listed session that signs in again has its place (%s)', async (way) => {
  const two = limitOf(2, way);
  const [first, second] = [await signIn(two), await signIn(two)];
  for (const { id } of [first, second]) {
    const change = { ...updateOf(id, {}), indexes, limit: two };
    expect(await store.scripts.save(change)).toEqual({ outcome: 'saved' });
  }
  expect(await Promise.all([first, second].map(({ id }) => store.isAlive(id)))).toEqual([true, true]);
});

it('what has expired without an event leaves the index, so that a sign-in behind much of it comes to an end', async () => {
  const ids = await Promise.all(Array.from({ length: 60 }, async () => (await signIn()).id));
  await Promise.all(ids.map((id) => store.runOut(id)));
  const one = limitOf(1, 'end-oldest');
  const outcomes = [await signIn(one), await signIn(one)].map(({ outcome }) => outcome);
  expect(outcomes).toEqual(['again', 'created']);
  expect(await listed()).toBe(1);
});
