import { Logger } from '@nestjs/common';
import { jest } from '@jest/globals';
import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { SessionExpirationSweeper } from '../../src/expiration/session-expiration.sweeper.js';
import { SessionScripts } from '../../src/scripts/session/session.scripts.js';
import { KeyEvents, recordedExpirations } from '../support/key-event.fixture.js';
import { Store } from '../support/store.fixture.js';
import { Timers } from '../support/timers.js';

LeakGuard.install();

Logger.overrideLogger(false);

describe.each([1, 4])('the listener of expired sessions with %d partitions', (partitions) => {
  let store: Store;
  let instance: KeyEvents;

  beforeAll(async () => {
    store = await Store.open({ partitions });
    instance = KeyEvents.start(store);
    await eventually(() => instance.notifications.health.state === 'listening');
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });
  afterAll(async () => {
    await instance.stop();
    await store.close();
  });

  /** Expires keys and has Redis notice it. */
  async function expire(...keys: string[]): Promise<void> {
    await store.expireKeysSoon(...keys);
    await eventually(async () => (await store.client.exists(...keys)) === 0);
  }

  const shadow = (id: string) => store.keysOf(id).shadow(id);
  const claims = () => jest.spyOn(SessionScripts.prototype, 'claimExpired');
  const members = (spy: ReturnType<typeof claims>) => spy.mock.calls.flatMap(([, claimed]) => claimed);
  const isRecorded = (id: string) =>
    eventually(async () => expect(await store.eventTypes(id)).toEqual(['created', 'expired']));

  it('records each announced end at once, many in one call, and each once', async () => {
    const ids = await Promise.all(Array.from({ length: 250 }, () => store.create({ a: '1' })));
    const spy = claims();
    await expire(...ids.map((id) => shadow(id)));
    await eventually(async () => (await recordedExpirations(store)).size >= ids.length);
    expect(await recordedExpirations(store)).toEqual(new Map(ids.map((id) => [id, 1])));
    expect(spy.mock.calls.length).toBeLessThan(25 * partitions);
    expect(Math.max(...spy.mock.calls.map(([, batch]) => batch.length))).toBeLessThanOrEqual(100);
    expect(members(spy).toSorted()).toEqual(ids.map((id) => `expires:${id}`).toSorted());
  });

  it('collects notifications for a while and claims a session once that was announced many times', async () => {
    const id = await store.create({ a: '1' });
    const spy = claims();
    await store.runOut(id);
    const channel = `__keyspace@0__:${shadow(id)}`;
    const begin = performance.now();
    await Promise.all(Array.from({ length: 20 }, () => store.client.publish(channel, 'expired')));
    await eventually(() => spy.mock.calls.length > 0, { interval: 1 });
    expect(performance.now() - begin).toBeGreaterThanOrEqual(49);
    await isRecorded(id);
    // What comes after the announcements: none is left for the next test.
    const last = await store.create({ a: '1' });
    await expire(shadow(last));
    await isRecorded(last);
    expect(members(spy).filter((member) => member === `expires:${id}`).length).toBeLessThan(20);
  });

  it('receives no notification of stray keys or of other key events of sessions', async () => {
    await store.client.config('SET', 'notify-keyspace-events', 'KEA');
    const spy = claims();
    const received = jest.spyOn(store.partitions, 'idOfShadow');
    const foreign = ['other:sessions:expires:x', 'nest:session:sessions:x', 'nest:session:sessions:expire', 'x'];
    await expire(...foreign);
    const deleted = await store.create({ a: '1' });
    await store.scripts.touch(deleted);
    await store.scripts.delete(deleted);
    const own = await store.create({ a: '1' });
    await expire(shadow(own));
    await isRecorded(own);
    expect(members(spy)).toEqual([`expires:${own}`]);
    expect(received.mock.calls).toEqual([[shadow(own)]]);
  });

  it('does not end a session that was renewed between its notification and the claim', async () => {
    const id = await store.create({ a: '1' });
    await store.client.publish(`__keyspace@0__:${shadow(id)}`, 'expired');
    const marker = await store.create({ a: '1' });
    await expire(shadow(marker));
    await isRecorded(marker);
    expect(await store.isAlive(id)).toBe(true);
    expect(await store.eventTypes(id)).toEqual(['created']);
  });

  it("never takes a canary, its own or another instance's, for a session", async () => {
    const spy = claims();
    const another = KeyEvents.start(store);
    await eventually(() => another.notifications.health.state === 'listening');
    const own = await store.create({ a: '1' });
    await expire(shadow(own));
    await isRecorded(own);
    await another.stop();
    expect(new Set(members(spy))).toEqual(new Set([`expires:${own}`]));
  });
});

it('the listener of expired sessions receives the expirations of all keys only until its own arrive', async () => {
  const store = await Store.open({ args: ['--notify-keyspace-events', 'Ex'] });
  await store.client.acl('SETUSER', 'app', 'on', '>secret', '~*', '&*', '+@all', '-config');
  const instance = KeyEvents.start(store, `redis://app:secret@127.0.0.1:${store.server.port}`);
  try {
    const channel = '__keyevent@0__:expired';
    const listening = async () => (await store.client.pubsub('NUMSUB', channel)) as [string, number];
    for (let round = 1; round <= 2; round++) {
      await eventually(async () => expect(await listening()).toEqual([channel, 1]));
      await store.client.config('SET', 'notify-keyspace-events', 'KEx');
      await eventually(async () => expect(await listening()).toEqual([channel, 0]));
      await store.client.config('SET', 'notify-keyspace-events', 'Ex');
    }
  } finally {
    await instance.stop();
    await store.close();
  }
});

it('the listener of expired sessions stops only after the replies to its claims', async () => {
  const store = await Store.open();
  const proxy = await TcpProxy.start({ port: store.server.port });
  const instance = KeyEvents.start(store, proxy.url);
  try {
    await eventually(() => instance.notifications.health.state === 'listening');
    const id = await store.create({ a: '1' });
    proxy.hold('request', `expires:${id}`);
    await store.expireSoon(id);
    await eventually(async () => expect(await store.isAlive(id)).toBe(false));
    await proxy.untilHeld('request');
    let isStopped = false;
    const stopped = instance.stop().then(() => (isStopped = true));
    for (let turn = 0; turn < 10; turn++) await store.client.ping();
    expect(isStopped).toBe(false);
    proxy.release('request');
    await stopped;
    expect(await store.eventTypes(id)).toEqual(['created', 'expired']);
  } finally {
    await proxy.stop();
    await store.close();
  }
});

it('the listener of expired sessions leaves no timer when it stops while it collects', async () => {
  const store = await Store.open();
  const timers = new Timers();
  timers.start();
  const instance = KeyEvents.start(store);
  try {
    await eventually(() => instance.notifications.health.state === 'listening');
    const channel = `__keyspace@0__:${store.keys.shadow(await store.create())}`;
    // The timers that the handler of a notification has started.
    const collecting = () => timers.left().filter((origin) => origin.includes('NotificationQueue'));
    // Again and again: on a slow machine a collection may be over before this test sees it.
    await eventually(async () => {
      await store.client.publish(channel, 'expired');
      return collecting().length > 0;
    });
    const stopped = instance.stop();
    expect(collecting()).toEqual([]);
    await stopped;
  } finally {
    timers.stop();
    await store.close();
  }
});

it('the listener of expired sessions logs the ends that it catches up with, where there are any', async () => {
  const store = await Store.open();
  const proxy = await TcpProxy.start({ port: store.server.port });
  const logs = jest.spyOn(Logger.prototype, 'log');
  const sweeps = jest.spyOn(SessionExpirationSweeper.prototype, 'pass');
  const areSwept = async (passes: number) => {
    await eventually(() => sweeps.mock.results.length >= passes);
    await sweeps.mock.results[passes - 1]!.value;
  };
  const instances: KeyEvents[] = [];
  try {
    instances.push(KeyEvents.start(store));
    await areSwept(1);
    for (let i = 0; i < 2; i++) await store.runOutLongAgo(await store.create());
    instances.push(KeyEvents.start(store, store.server.url, proxy.url));
    await areSwept(2);
    proxy.cut();
    await areSwept(3);
    await store.runOutLongAgo(await store.create());
    proxy.cut();
    await areSwept(4);
    const caughtUp = () => logs.mock.calls.map(([line]) => String(line)).filter((line) => line.startsWith('Caught up'));
    const line = (count: number) => `Caught up with ${count} sessions that had ended unheard`;
    await eventually(() => expect(caughtUp()).toEqual([line(2), line(1)]));
  } finally {
    for (const instance of instances) await instance.stop();
    jest.restoreAllMocks();
    await proxy.stop();
    await store.close();
  }
});

it('the listener of expired sessions collects 10,000 at most, and finds the others with a sweep', async () => {
  const store = await Store.open();
  const instance = KeyEvents.start(store);
  const claim = SessionScripts.prototype.claimExpired;
  const claims = jest.spyOn(SessionScripts.prototype, 'claimExpired');
  const received = jest.spyOn(store.partitions, 'idOfShadow');
  const publish = (id: string) => store.client.publish(`__keyspace@0__:${store.keys.shadow(id)}`, 'expired');
  try {
    await eventually(() => instance.notifications.health.state === 'listening');
    // The second flood is as the first one.
    for (let flood = 1; flood <= 2; flood++) {
      claims.mockClear();
      let release = () => {};
      const held = new Promise<void>((resolve) => (release = resolve));
      claims.mockImplementationOnce(async function (this: SessionScripts, ...call) {
        await held;
        return claim.apply(this, call);
      });
      await publish(store.id());
      await eventually(() => claims.mock.calls.length === 1);
      await Promise.all(Array.from({ length: 10_000 }, () => publish(store.id())));
      // Its time passes: a sweep of the current minute finds no session that a test has ended before its minute.
      const id = await store.create({ a: '1' }, { interval: 1 });
      await eventually(() => received.mock.results.filter(({ value }) => value === id).length > 0);
      release();
      const heard = () =>
        claims.mock.calls.filter(([, , minute]) => minute === undefined).flatMap(([, members]) => members);
      await eventually(() => heard().length >= 10_001);
      expect(heard()).not.toContain(`expires:${id}`);
      await eventually(async () => expect(await store.eventTypes(id)).toEqual(['created', 'expired']));
    }
  } finally {
    jest.restoreAllMocks();
    await instance.stop();
    await store.close();
  }
});

it('the listener of expired sessions begins no claim after it has stopped', async () => {
  const store = await Store.open();
  const instance = KeyEvents.start(store);
  const claims = jest.spyOn(SessionScripts.prototype, 'claimExpired');
  try {
    await eventually(() => instance.notifications.health.state === 'listening');
    const ids = await Promise.all(Array.from({ length: 500 }, () => store.create({ a: '1' })));
    let stopped: Promise<void> | undefined;
    claims.mockImplementationOnce(() => {
      stopped = instance.stop();
      return Promise.resolve([]);
    });
    await store.expireSoon(...ids);
    await eventually(async () => {
      await store.client.exists(...ids.map((id) => store.keys.shadow(id)));
      expect(stopped).toBeDefined();
    });
    await stopped;
    expect(claims).toHaveBeenCalledTimes(1);
  } finally {
    jest.restoreAllMocks();
    await instance.stop();
    await store.close();
  }
});
