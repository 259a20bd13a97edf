import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionDeletedEvent } from '@nest-session/core';
import type { RedisSessionModuleOptions } from '@nest-session/redis';
import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { EventInstance } from '../support/event-instance.fixture.js';
import { Store } from '../support/store.fixture.js';
import { Timers } from '../support/timers.js';

LeakGuard.install();

const GROUP = 'default';
// So long that no lease runs out.
const LEASE = '1h';

let store: Store;
beforeAll(async () => {
  store = await Store.open();
});
beforeEach(() => store.client.flushall());
afterAll(() => store.close());

/** An instance whose handler records its start, and runs until `finish`. */
async function start({
  url = store.server.url,
  shutdownTimeout = '1h',
  ...options
}: Pick<RedisSessionModuleOptions, 'url' | 'commandTimeout'> & {
  shutdownTimeout?: RedisSessionModuleOptions['commandTimeout'];
} = {}) {
  const begun: string[] = [];
  let finish!: () => void;
  const finished = new Promise<void>((resolve) => (finish = resolve));
  @Injectable()
  class Handlers {
    @OnSessionEvent(SessionDeletedEvent)
    async handle({ sessionId }: SessionDeletedEvent) {
      begun.push(sessionId);
      await finished;
    }
  }
  const redis = { url, ...options, events: { lease: LEASE, shutdownTimeout } };
  const instance = await EventInstance.start({ redis, providers: [Handlers] });
  return { instance, begun, finish };
}

async function endSession(on = store): Promise<string> {
  const id = await on.create({ cart: '"apple"' });
  await on.scripts.delete(id);
  return id;
}

it('shutdown waits for running handlers, starts no other, and leaves the group', async () => {
  const { instance, begun, finish } = await start();
  const id = await endSession();
  await eventually(() => begun.length === 1);
  const stopped = instance.stop();
  await eventually(async () => (await store.readers()) === 0);
  const late = await endSession();
  // An event that is not started is left to other instances.
  const other = await start();
  other.finish();
  await eventually(() => other.begun.includes(late));
  finish();
  await stopped;
  expect(begun).toEqual([id]);
  expect(other.begun).toEqual([late]);
  await eventually(async () => (await store.pending(GROUP)) === 0);
  expect(await store.consumers(GROUP)).toHaveLength(1);
  await other.instance.stop();
  expect(await store.consumers(GROUP)).toEqual([]);
});

it('shutdown is bounded: another instance handles an unfinished event at once', async () => {
  const { instance, begun, finish } = await start({ shutdownTimeout: '50ms' });
  const id = await endSession();
  await eventually(() => begun.length === 1);
  const other = await start();
  other.finish();
  await instance.stop();
  await eventually(() => other.begun.includes(id));
  await eventually(async () => (await store.pending(GROUP)) === 0);
  // No instance listens any more.
  finish();
  expect(EventInstance.log.matching(/Handlers of events have not finished within/)).toHaveLength(1);
  await other.instance.stop();
  expect(other.begun).toEqual([id]);
});

it('an event received too late to start is released to another instance at once', async () => {
  const proxy = await TcpProxy.start({ port: store.server.port });
  const { instance, begun } = await start({ url: proxy.url });
  try {
    const isReading = (burst: Buffer) => burst.includes('BLOCK');
    proxy.hold('request', isReading);
    await proxy.untilHeld('request');
    const id = await endSession();
    proxy.hold('reply', isReading);
    proxy.release('request');
    await eventually(async () => (await store.pending(GROUP)) > 0);
    await instance.stop();
    expect(begun).toEqual([]);
    const other = await start();
    other.finish();
    await eventually(() => other.begun.includes(id));
    await other.instance.stop();
    expect(await store.pending(GROUP)).toBe(0);
  } finally {
    await proxy.stop();
  }
});

it('shutdown leaves the group for good when Redis executes a read after the instance has left', async () => {
  const proxy = await TcpProxy.start({ port: store.server.port });
  const { instance } = await start({ url: proxy.url });
  try {
    proxy.hold('request', 'BLOCK');
    await proxy.untilHeld('request');
    const stopped = instance.stop();
    await eventually(async () => expect(await store.consumers(GROUP)).toEqual([]));
    const id = await endSession();
    proxy.release('request');
    await stopped;
    await eventually(async () => expect(proxy.connections).toBe(0));
    expect(await store.consumers(GROUP)).toEqual(['retries']);
    const other = await start();
    other.finish();
    await eventually(() => other.begun.includes(id));
    await other.instance.stop();
  } finally {
    await proxy.stop();
  }
});

it('shutdown ends while a handler hangs and Redis does not reply', async () => {
  const frozen = await Store.open();
  const { instance, begun } = await start({ url: frozen.server.url, shutdownTimeout: '50ms' });
  await endSession(frozen);
  await eventually(() => begun.length === 1);
  frozen.server.freeze();
  await instance.stop();
  frozen.server.thaw();
  await frozen.close();
});

it('an instance that is stopped while it joins its group is in no group and leaves no timer', async () => {
  const proxy = await TcpProxy.start({ port: store.server.port });
  const timers = new Timers();
  timers.start();
  try {
    // The script that creates the group has this key.
    proxy.hold('request', store.keys.trimmed);
    const { instance, finish } = await start({ url: proxy.url, commandTimeout: '500ms' });
    finish();
    await proxy.untilHeld('request');
    const stopped = instance.stop();
    proxy.release('request');
    await stopped;
    expect(await store.consumers(GROUP).catch(() => [])).toEqual([]);
    await eventually(() => expect(timers.left()).toEqual([]), { timeout: 5000 });
  } finally {
    timers.stop();
    await proxy.stop();
  }
});

it('an event whose data arrive too late to start is released to another instance at once', async () => {
  const proxy = await TcpProxy.start({ port: store.server.port });
  const { instance, begun, finish } = await start({ url: proxy.url });
  try {
    // Until then, the group wants the creation as well.
    await eventually(async () => expect(await store.client.hexists(store.keys.handlers, GROUP)).toBe(1));
    proxy.hold('request', 'hgetall');
    const id = await endSession();
    await proxy.untilHeld('request');
    const open = proxy.connections;
    const stopped = instance.stop();
    await eventually(() => expect(proxy.connections).toBeLessThan(open));
    proxy.release('request');
    await stopped;
    expect(begun).toEqual([]);
    const other = await start();
    other.finish();
    await eventually(() => other.begun.includes(id));
    await other.instance.stop();
    expect(await store.pending(GROUP)).toBe(0);
  } finally {
    finish();
    await proxy.stop();
  }
});
