import type { Duration } from '@nest-session/core';
import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { LivingInstances } from '../../../redis-events/src/namespace/living-instances.js';
import { EventInstance } from '../support/event-instance.fixture.js';
import { Store } from '../support/store.fixture.js';

LeakGuard.install();

let store: Store;
let proxy: TcpProxy;
beforeAll(async () => {
  store = await Store.open();
  proxy = await TcpProxy.start({ port: store.server.port });
});
afterAll(async () => {
  await proxy.stop();
  await store.close();
});
beforeEach(async () => {
  await store.client.flushall();
  // Connections succeed, but the check of the stored data has no reply.
  proxy.hold('reply', 'hmget');
});
afterEach(() => proxy.release());

const start = (requireAtStart: boolean, commandTimeout: Duration = '100ms') =>
  EventInstance.start({ redis: { url: proxy.url, commandTimeout, requireAtStart } });

it('an application starts while Redis does not reply, and logs an unknown data format once it does', async () => {
  await store.client.hset(store.partitions.meta, 'version', '99', 'partitions', '1');
  const instance = await start(false);
  expect(EventInstance.log.matching(/have format 99/)).toEqual([]);
  proxy.release();
  await eventually(() => expect(EventInstance.log.matching(/^error .*have format 99/)).toHaveLength(1));
  await instance.stop();
});

it('an application with requireAtStart does not start while Redis does not reply', async () => {
  await expect(start(true)).rejects.toThrow(
    'Redis does not reply, and option `requireAtStart` is set: SessionStoreError: "Redis did not reply within 100 ms"',
  );
});

it('an application that starts before Redis logs an unknown data format once Redis is there', async () => {
  await store.client.hset(store.partitions.meta, 'version', '98', 'partitions', '1');
  proxy.release();
  proxy.refuse();
  const instance = await start(false);
  expect(EventInstance.log.matching(/have format 98/)).toEqual([]);
  await proxy.accept();
  await eventually(() => expect(EventInstance.log.matching(/^error .*have format 98/)).toHaveLength(1));
  await instance.stop();
});

it('an application records its format and its partitions again where Redis has lost its data', async () => {
  proxy.release();
  const instance = await start(false, '10s');
  const recorded = () => store.client.hgetall(store.partitions.meta);
  const first = await recorded();
  expect(first).toMatchObject({ partitions: '1', holds: 'sessions' });
  const instances = instance.module.get(LivingInstances, { strict: false });
  await instances.runOnce();
  await store.client.flushall();
  await instances.runOnce();
  await eventually(async () => expect(await recorded()).toEqual(first));

  // Another application was faster.
  await store.client.flushall();
  await store.client.hset(store.partitions.meta, { ...first, partitions: '4' });
  await instances.runOnce();
  await eventually(() => expect(EventInstance.log.matching(/^error .*are in 4 partitions/)).toHaveLength(1));
  await instance.stop();
});
