import { PRINCIPAL_NAME_INDEX_NAME } from '@nest-session/core';
import type { SessionLimit } from '@nest-session/core/store';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { type SteppableStore, Store, updateOf } from '../support/store.fixture.js';

LeakGuard.install();

const ANN = 'ann';
const indexes = new Map([[PRINCIPAL_NAME_INDEX_NAME, ANN]]);

let store: SteppableStore;
beforeAll(async () => {
  store = await Store.openSteppable();
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

it('the session that signed in first ends first, also while the clock stands still', async () => {
  await store.server.stopClock();
  const two = limitOf(2, 'end-oldest');
  const signInAgain = async (id: string) => {
    const times = { maxInactiveInterval: 1800, absoluteTimeout: -1 };
    const newId = store.id();
    await store.scripts.save({ ...updateOf(id, { newId }), signIn: { butNot: [] }, ...times, indexes, limit: two });
    return newId;
  };
  const listedIds = () => store.client.zrange(store.keys.index(PRINCIPAL_NAME_INDEX_NAME, ANN), '0', '-1');
  for (let round = 0; round < 5; round++) {
    await store.client.flushall();
    const [first] = [(await signIn(two)).id, (await signIn(two)).id];
    const again = await signInAgain(first!);
    const third = (await signIn(two)).id;
    expect(await listedIds()).toEqual([again, third]);
    const rotated = store.id();
    await store.scripts.save({ ...updateOf(third, { newId: rotated }), limit: two });
    const fourth = (await signIn(two)).id;
    expect(await listedIds()).toEqual([rotated, fourth]);
  }
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
