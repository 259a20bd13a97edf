import { Injectable, type Type } from '@nestjs/common';
import {
  OnSessionEvent,
  OnSessionEventGap,
  SessionCreatedEvent,
  SessionDestroyedEvent,
  SessionEvent,
  SessionIdChangedEvent,
} from '@nest-session/core';
import type { RedisSessionModuleOptions } from '@nest-session/redis';
import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually, freePort, RedisServer } from '@nest-session/testing';
import { EventTrimmer } from '../../../redis-events/src/delivery/event.trimmer.js';
import { EventStreamScripts } from '../../../redis-events/src/scripts/event-stream.scripts.js';
import { BackgroundLimiter } from '../../../redis-events/src/timing/background.limiter.js';
import { broadcastCache } from '../support/broadcast.cache.js';
import { EventInstance, type EventInstanceOptions } from '../support/event-instance.fixture.js';
import { DEAD_LETTERS, GRACE, MINUTE, RETENTION, type SteppableStore, Store } from '../support/store.fixture.js';
import { SESSION_ENTRIES, sessionEvents } from '../support/event-scripts.js';
import { trimOnce } from '../support/trim-once.js';

LeakGuard.install();

const LIMITS = { grace: GRACE, retention: RETENTION, maxLength: 1_000_000, lease: 30_000, deadLetters: DEAD_LETTERS };

let store: SteppableStore;
let proxy: TcpProxy;
let trimmer: EventTrimmer;
let instances: EventInstance[] = [];
beforeAll(async () => {
  store = await Store.openSteppable();
  proxy = await TcpProxy.start({ port: store.server.port });
  const scripts = new EventStreamScripts(store.client, SESSION_ENTRIES);
  trimmer = new EventTrimmer(store.client, scripts, store.partitions, LIMITS, new BackgroundLimiter(), sessionEvents());
});
afterEach(async () => {
  for (const instance of instances) await instance.stop();
  instances = [];
  EventInstance.log.lines.splice(0);
  await store.client.flushall();
});
afterAll(async () => {
  await proxy.stop();
  await store.close();
});

async function start(
  providers: Type[],
  redis: RedisSessionModuleOptions = {},
  pace: EventInstanceOptions['pace'] = {},
): Promise<EventInstance> {
  const cleanup = { cron: '0 0 0 29 2 *' };
  const instance = await EventInstance.start({ redis: { url: store.server.url, cleanup, ...redis }, providers, pace });
  instances.push(instance);
  return instance;
}

/** Creates and ends a session: two events, whose names it returns. */
async function endSession(cart = 'apple'): Promise<string[]> {
  const id = await store.create({ cart: JSON.stringify(cart) });
  await store.scripts.delete(id);
  return [`created-${id}`, `deleted-${id}`];
}

async function isHeard(heard: readonly string[], names: readonly string[]): Promise<void> {
  // By their number: a comparison with a description of the difference at each poll would block this process.
  await eventually(() => heard.length >= names.length).catch(() => undefined);
  expect(heard).toEqual(names);
}

/** The names of the events that are kept, in order. */
async function recorded(): Promise<string[]> {
  const entries = await store.client.xrange(store.keys.events, '-', '+');
  return entries.map(([, [, type, , session]]) => `${type}-${session}`);
}

/** Trims to this number of events. */
const trimmerTo = (maxLength: number) =>
  new EventTrimmer(
    store.client,
    new EventStreamScripts(store.client, SESSION_ENTRIES),
    store.partitions,
    { ...LIMITS, maxLength },
    new BackgroundLimiter(),
    sessionEvents(),
  );

const gapsInLog = () => EventInstance.log.matching(/^warn Broadcast events recorded after \S+ were missed/);

/** The instance behind the proxy loses Redis, and has logged it. */
function disconnect(): void {
  proxy.refuse();
  proxy.cut();
}

it('every instance receives the events recorded since its start, in order, and one of them handles each', async () => {
  await endSession();
  const handled: string[] = [];
  @Injectable()
  class Handlers {
    @OnSessionEvent(SessionEvent)
    handle(event: SessionEvent) {
      handled.push(event.id);
    }
  }
  const caches = [broadcastCache(), broadcastCache(), broadcastCache()];
  await start([caches[0]!.Cache, Handlers]);
  await start([caches[1]!.Cache, Handlers]);
  await start([caches[2]!.Cache], { events: { consume: false } });
  const names: string[] = [];
  for (let i = 0; i < 200; i++) names.push(...(await endSession()));
  for (const { heard } of caches) await isHeard(heard, names);
  await eventually(() => handled.length >= 2 + names.length);
  expect(handled).toHaveLength(2 + names.length);
  expect(caches.flatMap(({ gaps }) => gaps)).toEqual([]);
});

it('an instance receives broadcast events one by one with their data, and logs a failed one without a retry', async () => {
  const log: string[] = [];
  @Injectable()
  class Sockets {
    @OnSessionEvent(SessionEvent, { broadcast: true })
    async close({ type, session }: SessionEvent) {
      const cart = String(session.getAttribute('cart'));
      log.push(`begin ${type} ${cart}`);
      await new Promise((resolve) => setImmediate(resolve));
      log.push(`end ${type} ${cart}`);
      if (type === 'created') throw new Error('no socket');
    }
  }
  await start([Sockets]);
  await endSession('apple');
  await endSession('pear');
  await isHeard(
    log,
    ['apple', 'pear'].flatMap((cart) =>
      ['created', 'deleted'].flatMap((type) => [`begin ${type} ${cart}`, `end ${type} ${cart}`]),
    ),
  );
  expect(EventInstance.log.matching(/^error Sockets.close failed to handle session event created-/)).toHaveLength(2);
});

it('an instance broadcasts an event later whose data it could not read', async () => {
  await store.client.acl('SETUSER', 'app', 'reset', 'on', '>secret', '~*', '&*', '+@all');
  const { heard, gaps, Cache } = broadcastCache();
  await start([Cache], { url: `redis://app:secret@127.0.0.1:${store.server.port}` });
  await store.client.acl('SETUSER', 'app', '-hgetall');
  const names = await endSession();
  await eventually(() =>
    expect(EventInstance.log.matching(/Broadcast events cannot be read.*hgetall/i)).toHaveLength(1),
  );
  await store.client.acl('SETUSER', 'app', '+hgetall');
  await isHeard(heard, names);
  expect(gaps).toEqual([]);
});

it.each(['{', 'null', '[1]', '{"creationTime":{}}'])(
  'an instance takes an entry with the data %s of somebody else for one without data, and goes on',
  async (data) => {
    const { heard, gaps, Cache } = broadcastCache();
    const handled: [id: string, dataLost: boolean][] = [];
    @Injectable()
    class Handlers {
      @OnSessionEvent(SessionEvent)
      handle({ id, dataLost }: SessionEvent) {
        handled.push([id, dataLost]);
      }
    }
    await start([Cache, Handlers]);
    const fields = ['type', 'deleted', 'session', 'foreign', 'at', '1', 'data', data];
    await store.client.xadd(store.keys.events, '*', ...fields);
    const names = await endSession();
    await isHeard(heard, ['deleted-foreign', ...names]);
    await eventually(() => expect(handled).toHaveLength(3));
    expect(handled[0]).toEqual(['deleted-foreign', true]);
    expect(gaps).toEqual([]);
  },
);

it('an instance without broadcast handlers opens no connection for them', async () => {
  @Injectable()
  class Handlers {
    @OnSessionEvent(SessionEvent)
    handle() {}
  }
  const names = async () => (await store.client.client('LIST')) as string;
  await start([Handlers]);
  await eventually(async () => expect(await names()).toContain('name=nest:session:reader'));
  expect(await names()).not.toContain('name=nest:session:broadcast');
  await start([broadcastCache().Cache]);
  await eventually(async () => expect(await names()).toContain('name=nest:session:broadcast'));
});

describe('an instance after an outage', () => {
  it('receives each event that was recorded during the outage once', async () => {
    const { heard, gaps, Cache } = broadcastCache();
    await start([Cache], { url: proxy.url });
    const names = await endSession();
    await isHeard(heard, names);
    disconnect();
    for (let i = 0; i < 150; i++) names.push(...(await endSession()));
    await store.server.stepClock(50 * MINUTE);
    await trimOnce(trimmer);
    await proxy.accept();
    await isHeard(heard, names);
    names.push(...(await endSession()));
    await isHeard(heard, names);
    expect(gaps).toEqual([]);
  });

  it('is notified of the gap once when events were removed, and receives the later events', async () => {
    const { heard, gaps, Cache } = broadcastCache();
    await start([Cache], { url: proxy.url });
    const names = await endSession();
    await isHeard(heard, names);
    const before = await store.now();
    disconnect();
    await endSession();
    await store.server.stepClock(40 * MINUTE);
    const later = await endSession();
    await store.server.stepClock(21 * MINUTE);
    expect(await trimOnce(trimmer)).toMatchObject({ removed: 4 });
    await proxy.accept();
    await isHeard(heard, [...names, 'gap', ...later]);
    const [gap] = gaps;
    expect(gap!.since).toBeLessThanOrEqual(before);
    expect(gap!.since).toBeGreaterThan(before - MINUTE);
    expect(gapsInLog()).toHaveLength(1);
    const latest = await endSession();
    await isHeard(heard, [...names, 'gap', ...later, ...latest]);
  });

  it('is notified of the gap when all events were removed', async () => {
    const { heard, gaps, Cache } = broadcastCache();
    await start([Cache], { url: proxy.url });
    const names = await endSession();
    await isHeard(heard, names);
    disconnect();
    await endSession();
    await store.server.stepClock(61 * MINUTE);
    expect(await trimOnce(trimmer)).toMatchObject({ removed: 4 });
    await proxy.accept();
    await eventually(() => expect(gaps).toHaveLength(1));
    const later = await endSession();
    await isHeard(heard, [...names, 'gap', ...later]);
    expect(gapsInLog()).toHaveLength(1);
  });

  it.each([
    ['all events', async () => void (await store.client.flushall())],
    [
      'the latest events',
      async (former: Buffer) => {
        await store.client.restore(store.keys.events, 0, former, 'REPLACE');
      },
    ],
  ])(
    'and each other one is notified of the gap when Redis has lost %s and others were recorded since',
    async (_, lose) => {
      const all = [broadcastCache(), broadcastCache()];
      for (const { Cache } of all) await start([Cache], { url: proxy.url });
      const names = await endSession();
      const former = await store.client.dumpBuffer(store.keys.events);
      const lost = await endSession();
      for (const { heard } of all) await isHeard(heard, [...names, ...lost]);
      disconnect();
      const before = await store.now();
      await lose(former!);
      const later = await endSession();
      await proxy.accept();
      for (const { heard, gaps } of all) {
        await isHeard(heard, [...names, ...lost, 'gap', ...later]);
        expect(gaps[0]!.since).toBeLessThanOrEqual(before);
      }
      expect(gapsInLog()).toHaveLength(2);
      const latest = await endSession();
      for (const { heard } of all) await isHeard(heard, [...names, ...lost, 'gap', ...later, ...latest]);
    },
  );

  it('is notified of creations that have made room for ends, and receives all ends', async () => {
    const { heard, gaps, Cache } = broadcastCache();
    const ended: string[] = [];
    let endGaps = 0;
    @Injectable()
    class Sockets {
      @OnSessionEvent(SessionDestroyedEvent, { broadcast: true })
      close({ id }: SessionDestroyedEvent) {
        ended.push(id);
      }

      @OnSessionEventGap()
      closeAll() {
        endGaps++;
      }
    }
    await start([Cache], { url: proxy.url });
    await start([Sockets], { url: proxy.url });
    const first = await endSession();
    await isHeard(heard, first);
    await isHeard(ended, first.slice(1));
    disconnect();
    const names = (await Promise.all([endSession(), endSession(), endSession()])).flat();
    const ends = (await recorded()).filter((name) => name.startsWith('deleted-') && names.includes(name));
    expect(await trimOnce(trimmerTo(4))).toMatchObject({ removed: 4 });
    await proxy.accept();
    await isHeard(heard, [...first, 'gap', ...ends]);
    await isHeard(ended, [...first.slice(1), ...ends]);
    const later = await endSession();
    await isHeard(heard, [...first, 'gap', ...ends, ...later]);
    expect([gaps.length, endGaps, gapsInLog().length]).toEqual([1, 0, 1]);
  });

  it('is notified of changes of id that have made room for ends, if it wants them', async () => {
    const [moved, greeted]: [string[], string[]] = [[], []];
    @Injectable()
    class Moves {
      @OnSessionEvent(SessionIdChangedEvent, { broadcast: true })
      move({ sessionId }: SessionIdChangedEvent) {
        moved.push(sessionId);
      }

      @OnSessionEventGap()
      closeAll() {
        moved.push('gap');
      }
    }
    @Injectable()
    class Greetings {
      @OnSessionEvent(SessionCreatedEvent, { broadcast: true })
      greet({ sessionId }: SessionCreatedEvent) {
        greeted.push(sessionId);
      }

      @OnSessionEventGap()
      again() {
        greeted.push('gap');
      }
    }
    await start([Moves], { url: proxy.url });
    await start([Greetings], { url: proxy.url });
    const ids = [await store.create(), store.id(), store.id(), store.id()];
    await isHeard(greeted, [ids[0]!]);
    const rotate = (i: number) => store.save(ids[i - 1]!, { newId: ids[i]! });
    await rotate(1);
    await isHeard(moved, [ids[1]!]);
    disconnect();
    await rotate(2);
    await rotate(3);
    expect(await trimOnce(trimmerTo(1))).toMatchObject({ removed: 3 });
    await proxy.accept();
    await isHeard(moved, [ids[1]!, 'gap', ids[3]!]);
    const later = await store.create();
    await isHeard(greeted, [ids[0]!, later]);
    expect(gapsInLog()).toHaveLength(1);
  });

  it('is not notified of a gap when only events it had received were removed', async () => {
    const { heard, gaps, Cache } = broadcastCache();
    await start([Cache], { url: proxy.url });
    const names = await endSession();
    await isHeard(heard, names);
    disconnect();
    await store.server.stepClock(61 * MINUTE);
    expect(await trimOnce(trimmer)).toMatchObject({ removed: 2 });
    names.push(...(await endSession()));
    await proxy.accept();
    await isHeard(heard, names);
    expect(gaps).toEqual([]);
  });
});

it('an instance is notified of the gap when Redis has lost its data, and receives the later events', async () => {
  const { heard, gaps, Cache } = broadcastCache();
  await start([Cache]);
  const names = await endSession();
  await isHeard(heard, names);
  await store.server.kill();
  // Its positions are before those of the events received so far.
  await store.server.stepClock(-10 * MINUTE);
  await store.server.restart();
  await eventually(() => expect(gaps).toHaveLength(1));
  const later = await endSession();
  await isHeard(heard, [...names, 'gap', ...later]);
  expect(gapsInLog()).toHaveLength(1);
});

it('an instance that starts without Redis receives the events recorded once Redis is up', async () => {
  const port = await freePort();
  const { heard, gaps, Cache } = broadcastCache();
  const instance = await start([Cache], { url: `redis://127.0.0.1:${port}`, commandTimeout: '100ms' });
  const late = await RedisServer.start({ port });
  try {
    const client = await connected(late);
    const names = Array.from({ length: 20 }, (_, i) => `created-s${i}`);
    for (const name of names) {
      const fields = ['type', 'created', 'session', name.slice('created-'.length), 'at', '1'];
      await client.xadd(store.keys.events, '*', ...fields);
    }
    client.disconnect();
    await isHeard(heard, names);
    expect(gaps).toEqual([]);
  } finally {
    instances = [];
    await instance.stop();
    await late.stop();
  }
});

describe('an instance that starts before it can reach Redis', () => {
  it('receives the events recorded since its start', async () => {
    await endSession();
    const { heard, gaps, Cache } = broadcastCache();
    disconnect();
    await start([Cache], { url: proxy.url, commandTimeout: '100ms' });
    const names = await endSession();
    await proxy.accept();
    await isHeard(heard, names);
    names.push(...(await endSession()));
    await isHeard(heard, names);
    expect(gaps).toEqual([]);
  });

  it('is notified of the gap when some of them were removed', async () => {
    const { heard, gaps, Cache } = broadcastCache();
    disconnect();
    await start([Cache], { url: proxy.url, commandTimeout: '100ms' });
    await endSession();
    await trimOnce(trimmerTo(0));
    await proxy.accept();
    await eventually(() => expect(gaps).toHaveLength(1));
    const later = await endSession();
    await isHeard(heard, ['gap', ...later]);
  });
});

async function connected(server: RedisServer) {
  const client = store.client.duplicate({ port: server.port });
  await client.ping();
  return client;
}

describe('at shutdown, a running broadcast handler', () => {
  it('is awaited', async () => {
    let finish!: () => void;
    const log: string[] = [];
    @Injectable()
    class Sockets {
      @OnSessionEvent(SessionEvent, { broadcast: true })
      async close() {
        log.push('begun');
        await new Promise<void>((resolve) => (finish = resolve));
        log.push('finished');
      }
    }
    const instance = await start([Sockets]);
    await endSession();
    await eventually(() => log.length > 0);
    const stopped = instance.stop().then(() => log.push('stopped'));
    await new Promise((resolve) => setImmediate(resolve));
    finish();
    await stopped;
    instances = [];
    expect(log).toEqual(['begun', 'finished', 'stopped']);
  });

  it('is awaited for no longer than `shutdownTimeout`', async () => {
    let begun = false;
    @Injectable()
    class Sockets {
      @OnSessionEvent(SessionEvent, { broadcast: true })
      close() {
        begun = true;
        return new Promise(() => undefined);
      }
    }
    await start([Sockets], { events: { shutdownTimeout: '50ms' } });
    await endSession();
    await eventually(() => begun);
  });
});

it('an instance is notified of the gap once when Redis was emptied', async () => {
  const { heard, gaps, Cache } = broadcastCache();
  await start([Cache], {}, { wishRenewal: 3_600_000 });
  const names = await endSession();
  await isHeard(heard, names);
  const before = await store.now();
  await store.client.flushall();
  await eventually(() => expect(gaps).not.toEqual([]));
  await eventually(async () => expect(await store.client.exists(store.keys.broadcastWanted('created'))).toBe(1));
  const later = await endSession();
  await isHeard(heard, [...names, 'gap', ...later]);
  expect(gaps[0]!.since).toBeGreaterThan(before - MINUTE);
  expect(gapsInLog()).toHaveLength(1);
});
