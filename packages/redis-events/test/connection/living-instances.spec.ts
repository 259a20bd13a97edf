import { LeakGuard } from '@nest-session/test-infrastructure';
import type { Redis } from 'ioredis';
import { LivingInstances } from '../../src/namespace/living-instances.js';
import { Store } from '../../../session-redis/test/support/store.fixture.js';

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

it('an instance that stops while its sign of life is on the way does not count as alive', async () => {
  let release: () => void;
  const held = new Promise<void>((resolve) => (release = resolve));
  const last = { run: <T>(command: (client: Redis) => Promise<T>) => command(store.client) };
  const slow = { run: <T>(command: (client: Redis) => Promise<T>) => held.then(() => last.run(command)) };
  const stopping = new LivingInstances(slow, store.partitions, 'host:1', last);
  let entries = 0;
  stopping.onForgotten(async () => {
    entries++;
    await stopping.sign();
  });
  const signed = stopping.runOnce();
  const stopped = stopping.stop();
  await store.client.ping();
  release!();
  await Promise.all([signed, stopped]);
  expect(await store.client.zrange(store.partitions.instances, '0', '-1')).toEqual([]);
  expect(entries).toBe(0);
});
