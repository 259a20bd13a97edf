import { LeakGuard } from '@nest-session/test-infrastructure';
import { LivingInstances } from '../../src/connection/living-instances.js';
import { Store } from '../support/store.fixture.js';

LeakGuard.install();

let store: Store;
beforeAll(async () => {
  store = await Store.open();
});
afterEach(() => store.client.flushall());
afterAll(() => store.close());

const instance = (name: string) =>
  new LivingInstances({ run: (command) => command(store.client) }, store.partitions, name);

it('an instance counts as alive while Redis is out of memory, also one that starts then', async () => {
  const [one, other] = [instance('one'), instance('other')];
  await one.sign();
  // As if it had signed a minute ago.
  await store.client.zincrby(store.partitions.instances, -60_000, 'one');
  expect(await other.others()).toEqual([]);
  await store.client.config('SET', 'maxmemory', '1');
  try {
    expect(await one.sign()).toBe(false);
    expect(await other.sign()).toBe(true);
  } finally {
    await store.client.config('SET', 'maxmemory', '0');
  }
  expect(await other.others()).toEqual(['one']);
  expect(await one.others()).toEqual(['other']);
});
