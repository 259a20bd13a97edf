import { jest } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionExpiredEvent, SessionRepository } from '@nest-session/core';
import type { RedisSessionModuleOptions } from '@nest-session/redis';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { RETRY } from '../../src/timing/background-service.js';
import { PartitionSignals } from '../../src/connection/partition-signals.js';
import { DuePoller } from '../../src/cleanup/due-poller.js';
import { SessionPartitions } from '../../../session-redis/src/keys/session-partitions.js';
import { SessionScripts } from '../../../session-redis/src/scripts/session/session.scripts.js';
import { BackgroundLimiter } from '../../src/timing/background.limiter.js';
import { EventInstance } from '../../../session-redis/test/support/event-instance.fixture.js';
import { HandClock } from '../../../session-redis/test/support/hand-clock.js';
import { HandSignals } from '../../../session-redis/test/support/hand-signals.js';
import { LineRecorder } from '../../../session-redis/test/support/line.recorder.js';
import { Store } from '../../../session-redis/test/support/store.fixture.js';
import { SortedSetExpirationStore } from '../../../session-redis/src/expiration/session-expiration.sweeper.js';
import type { SessionKeys } from '../../../session-redis/src/keys/session-keys.js';

LeakGuard.install();

const NEVER = '0 0 0 29 2 *';
// Milliseconds.
const PROMISED = 250;

@Injectable()
class Handlers {
  readonly heard: string[] = [];

  @OnSessionEvent(SessionExpiredEvent)
  handle({ sessionId, dataLost }: SessionExpiredEvent) {
    if (!dataLost) this.heard.push(sessionId);
  }
}

afterEach(() => {
  jest.restoreAllMocks();
});

describe.each([1, 4])('an instance that polls, with %d partitions,', (partitions) => {
  let store: Store;
  const instances: EventInstance[] = [];
  beforeAll(async () => {
    store = await Store.open({ partitions, expirations: 'sorted-set' });
  });
  afterEach(async () => {
    for (const instance of instances.splice(0)) await instance.stop();
    EventInstance.log.lines.length = 0;
    await store.client.flushall();
  });
  afterAll(() => store.close());

  async function start(redis: RedisSessionModuleOptions = {}): Promise<EventInstance> {
    const options = { url: store.server.url, partitions, cleanup: { cron: NEVER }, notifications: 'off' as const };
    const instance = await EventInstance.start({
      redis: { ...options, expirations: 'sorted-set', ...redis },
      providers: [Handlers],
    });
    instances.push(instance);
    return instance;
  }

  /** Milliseconds between the end of each session and its record, by the clock of Redis. */
  async function lags(ids: readonly string[], ends: ReadonlyMap<string, number>): Promise<number[]> {
    const recorded = await Promise.all(
      ids.map(async (id) => (await store.events(id)).filter(({ type }) => type === 'expired')),
    );
    return recorded.map((events, i) => {
      expect(events).toHaveLength(1);
      return Number(events[0]!['at']) - ends.get(ids[i]!)!;
    });
  }

  it('reports ends within 250 ms without key events, once each, with their data, and sweeps nothing', async () => {
    const all = [await start(), await start()];
    if (partitions > 1) await eventually(() => expect(all.every(hearsAll)).toBe(true));
    const repository = all[0]!.module.get(SessionRepository, { strict: false });
    const ends = new Map<string, number>();
    for (let i = 0; i < 20; i++) {
      const session = repository.createSession();
      session.maxInactiveInterval = 1;
      session.setAttribute('cart', 'apple');
      await repository.save(session);
      ends.set(session.id, await store.client.pexpiretime(store.keysOf(session.id).shadow(session.id)));
    }
    const heard = () => all.flatMap(({ module }) => module.get(Handlers).heard);
    await eventually(() => expect(heard()).toHaveLength(20));
    expect(heard().toSorted()).toEqual([...ends.keys()].toSorted());
    const late = await lags([...ends.keys()], ends);
    expect(Math.min(...late)).toBeGreaterThan(0);
    // The median: other work on this machine may hold up some.
    expect(late.toSorted((a, b) => a - b)[10]).toBeLessThan(PROMISED);
  });

  it('goes on when a stray key has stood in the place of a sorted set, and says so once', async () => {
    const [id, before] = [store.id(), store.id()];
    const { ends } = store.keysOf(id);
    await store.client.set(ends, 'planted');
    const instance = await start();
    const said = (text: string) => EventInstance.log.lines.filter((line) => line.includes(text));
    await eventually(() => expect(said('The search for sessions that are due failed')).toHaveLength(1));
    expect(said('The search for sessions that are due failed')[0]).toContain(
      `WRONGTYPE ${ends} is a string, not a zset`,
    );
    await store.client.del(ends);
    await store.create({ a: '1' }, { id, interval: 1 });
    await store.create({ a: '1' }, { id: before, interval: 1 });
    const { heard } = instance.module.get(Handlers);
    await eventually(() => expect(heard.toSorted()).toEqual([id, before].toSorted()));
    expect(said('The search for sessions that are due failed')).toHaveLength(1);
  });

  const hearsAll = ({ module }: EventInstance) => {
    const signals = module.get(PartitionSignals);
    return module.get(SessionPartitions).all.every((keys) => signals.heardSince(keys) < Infinity);
  };
});

describe('an instance at rest', () => {
  it('looks at 64 partitions less than five times a second where signals are heard, and not at all with buckets', async () => {
    const store = await Store.open({ partitions: 64 });
    const looks = jest.spyOn(SessionScripts.prototype, 'claimDue');
    const redis = { url: store.server.url, partitions: 64, cleanup: { cron: NEVER }, notifications: 'off' as const };
    const inBuckets = await EventInstance.start({ redis });
    const instance = await EventInstance.start({ redis: { ...redis, expirations: 'sorted-set' } });
    try {
      const signals = instance.module.get(PartitionSignals);
      const heard = () => instance.module.get(SessionPartitions).all.map((keys) => signals.heardSince(keys));
      await eventually(() => expect(Math.max(...heard())).toBeLessThan(Infinity));
      // Each partition after its signals were heard, in the last second.
      const rest = async () => {
        const before = looks.mock.calls.length;
        const begun = performance.now();
        await eventually(() => performance.now() - begun >= 1000);
        return looks.mock.calls.length - before;
      };
      await eventually(async () => expect(await rest()).toBeLessThan(5), { timeout: 20_000 });
      expect(await rest()).toBeLessThan(5);
      expect(new Set(looks.mock.calls.map(([keys]) => keys.prefix)).size).toBe(64);
    } finally {
      await instance.stop();
      await inBuckets.stop();
      await store.close();
    }
  });
});

describe('the poller', () => {
  let store: Store;
  let poller: DuePoller<SessionKeys>;
  let signals: HandSignals;
  beforeAll(async () => {
    store = await Store.open({ partitions: 4, expirations: 'sorted-set' });
  });
  beforeEach(async () => {
    await store.client.flushall();
    signals = new HandSignals();
    const list = new SortedSetExpirationStore(store.client, store.scripts, { batchSize: 10 }, new BackgroundLimiter());
    poller = new DuePoller('sessions', list, store.partitions.all, signals);
  });
  afterEach(() => poller.stop());
  afterAll(() => store.close());

  const heard = () => jest.spyOn(signals, 'heardSince').mockReturnValue(0);
  /** Resolves when every partition was looked at. */
  const atRest = async (looks: jest.SpiedFunction<SessionScripts['claimDue']>) => {
    await eventually(() => expect(new Set(looks.mock.calls.map(([keys]) => keys)).size).toBe(4));
    await Promise.all(looks.mock.results.map(({ value }) => value));
    looks.mockClear();
  };

  it('looks at every partition, and takes all that is due in batches', async () => {
    const ids = await Promise.all(Array.from({ length: 100 }, () => store.create({ a: '1' })));
    for (const id of ids) {
      await store.runOut(id);
      await store.client.zadd(store.keysOf(id).ends, 1, id);
    }
    poller.start();
    await eventually(async () => expect(await store.eventTypesOf(ids)).toEqual(ids.map(() => ['created', 'expired'])));
  });

  it('looks at a partition at once when signals may have been missed, and when a signal says', async () => {
    heard();
    const looks = jest.spyOn(store.scripts, 'claimDue');
    poller.start();
    await atRest(looks);
    const [first, second] = store.partitions.all;
    signals.tell(first!, 'missed');
    await eventually(() => expect(looks.mock.calls.map(([keys]) => keys)).toEqual([first]));
    signals.tell(second!, 'end 40');
    signals.tell(second!, 'end 50000');
    await eventually(() => expect(looks.mock.calls.map(([keys]) => keys)).toEqual([first, second]));
  });

  it('looks at each partition within a second where signals are not heard', async () => {
    const looks = jest.spyOn(store.scripts, 'claimDue');
    poller.start();
    await atRest(looks);
    const begun = performance.now();
    await eventually(() => expect(new Set(looks.mock.calls.map(([keys]) => keys)).size).toBe(4));
    // A stall of this process only makes it longer.
    expect(performance.now() - begun).toBeGreaterThan(500);
  });

  it('looks within a second at a partition whose signals are heard since its last look, and then within a minute', async () => {
    const [keys, other] = store.partitions.all;
    const clock = new HandClock();
    const since = performance.now() + 1;
    jest.spyOn(signals, 'heardSince').mockImplementation((each) => (each === keys ? since : -Infinity));
    const looks = jest.spyOn(store.scripts, 'claimDue');
    poller.start();
    await atRest(looks);
    /** The next look at the partition comes after this time, and not before it. */
    const nextLook = async (milliseconds: number) => {
      const looked = () => looks.mock.calls.map(([each]) => each);
      clock.pass(milliseconds - 1);
      // Then it looks at all that are due.
      signals.tell(other!, 'missed');
      await eventually(() => expect(looked()).toContain(other));
      expect(looked()).not.toContain(keys);
      clock.pass(1);
      signals.tell(other!, 'missed');
      await eventually(() => expect(looked()).toContain(keys));
      await Promise.all(looks.mock.results.map(({ value }) => value));
      looks.mockClear();
    };
    await nextLook(1000);
    for (let minute = 1; minute <= 2; minute++) await nextLook(60_000);
  });

  it('looks twice a second at a partition that fails, at once when a signal comes from there, and so a second time', async () => {
    heard();
    const [keys, other] = store.partitions.all;
    const clock = new HandClock();
    const looks = jest.spyOn(store.scripts, 'claimDue');
    const looksHere = () => looks.mock.calls.filter(([each]) => each === keys).length;
    /** The next look at the partition comes after this time, and not before it. */
    const nextLook = async (milliseconds: number, tell: () => void) => {
      const before = looksHere();
      clock.pass(milliseconds - 1);
      tell();
      await store.client.ping();
      expect(looksHere()).toBe(before);
      clock.pass(1);
      tell();
      await eventually(() => expect(looksHere()).toBe(before + 1));
      await Promise.allSettled([looks.mock.results.at(-1)!.value]);
    };
    // Then it looks at all that are due.
    const nothingHere = () => signals.tell(other!, 'missed');
    const missed = () => signals.tell(keys!, 'missed');
    const farEnd = () => signals.tell(keys!, 'end 40000');
    poller.start();
    await atRest(looks);
    for (let round = 1; round <= 2; round++) {
      await store.client.set(keys!.ends, 'foreign');
      await nextLook(100, missed);
      for (let attempt = 1; attempt <= 10; attempt++) await nextLook(RETRY, nothingHere);
      await nextLook(100, farEnd);
      await store.client.del(keys!.ends);
      await nextLook(100, farEnd);
    }
  });

  it('looks again at a partition of which a signal tells during the look', async () => {
    heard();
    const [keys] = store.partitions.all;
    const looks = jest.spyOn(store.scripts, 'claimDue');
    poller.start();
    await atRest(looks);
    // The next end that this look finds is far away.
    for (const id of Array.from({ length: 20 }, () => store.id())) await store.create({}, { id });
    const gate = new Gate();
    looks.mockImplementationOnce(async () => {
      await gate.pass();
      return { now: 0, next: 1_800_000, entries: [] };
    });
    signals.tell(keys!, 'missed');
    await gate.reached();
    signals.tell(keys!, 'end 40');
    gate.open();
    await eventually(() => expect(looks.mock.calls.map(([each]) => each)).toEqual([keys, keys]));
  });

  it('says once that a partition fails while the others do not, and once that it works again', async () => {
    const [failing, other] = store.partitions.all;
    const clock = new HandClock();
    jest.spyOn(signals, 'heardSince').mockReturnValue(-Infinity);
    const looks = jest.spyOn(store.scripts, 'claimDue');
    const log = new LineRecorder().install();
    const said = () => log.lines.map((line) => /^The search for sessions that are due (failed|works)/.exec(line)?.[1]);
    await store.client.set(failing!.ends, 'foreign');
    poller.start();
    await eventually(() => expect(looks).toHaveBeenCalledTimes(4));
    await Promise.allSettled(looks.mock.results.map(({ value }) => value));
    for (let attempt = 1; attempt <= 3; attempt++) {
      clock.pass(RETRY);
      const before = looks.mock.calls.length;
      for (const keys of [failing, other]) signals.tell(keys!, 'missed');
      await eventually(() => expect(looks.mock.calls.length).toBeGreaterThanOrEqual(before + 2));
      await Promise.allSettled(looks.mock.results.map(({ value }) => value));
    }
    expect(said()).toEqual(['failed']);
    await store.client.del(failing!.ends);
    clock.pass(RETRY);
    signals.tell(failing!, 'missed');
    await eventually(() => expect(said()).toEqual(['failed', 'works']));
  });

  it('is not held up in one partition by another one that does not reply', async () => {
    const [held, id] = [await store.create({ a: '1' }), await store.create({ a: '1' })];
    const other = store.keysOf(held) === store.keysOf(id) ? await store.create({ a: '1' }, { id: apart(held) }) : id;
    const claimDue = store.scripts.claimDue.bind(store.scripts);
    let release: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => (release = resolve));
    const limiter = new BackgroundLimiter(1, (key) => key);
    const scripts = Object.assign(Object.create(store.scripts), {
      claimDue: async (...args: Parameters<SessionScripts['claimDue']>) => {
        if (args[0] === store.keysOf(held)) await gate;
        return claimDue(...args);
      },
    }) as SessionScripts;
    const list = new SortedSetExpirationStore(store.client, scripts, { batchSize: 10 }, limiter);
    poller = new DuePoller('sessions', list, store.partitions.all, signals);
    for (const each of [held, other]) {
      await store.runOut(each);
      await store.client.zadd(store.keysOf(each).ends, 1, each);
    }
    poller.start();
    await eventually(async () => expect(await store.eventTypes(other)).toEqual(['created', 'expired']));
    expect(await store.eventTypes(held)).toEqual(['created']);
    const stopped = poller.stop();
    release();
    await stopped;
    expect(await store.eventTypes(held)).toEqual(['created', 'expired']);
  });

  /** An id in another partition. */
  function apart(id: string): string {
    const other = store.id();
    return store.keysOf(other) === store.keysOf(id) ? apart(id) : other;
  }
});

it('a script tells of an end within the next minute, in its partition, and of no other one', async () => {
  const store = await Store.open({ partitions: 4, expirations: 'sorted-set' });
  const subscriber = new Redis(store.server.url);
  const told: [string, string][] = [];
  try {
    subscriber.on('smessage', (channel: string, message: string) => {
      if (message.startsWith('end ')) told.push([channel, message]);
    });
    for (const { events } of store.partitions.all) await subscriber.ssubscribe(events);
    await store.create({ a: '1' }, { interval: 60 });
    const soon = await store.create({ a: '1' }, { interval: 59 });
    const later = await store.create({ a: '1' });
    await store.scripts.touch(later);
    await store.save(later, { maxInactiveInterval: 30 });
    await eventually(() =>
      expect(told).toEqual([
        [store.keysOf(soon).events, 'end 59000'],
        [store.keysOf(later).events, 'end 30000'],
      ]),
    );
  } finally {
    subscriber.disconnect();
    await store.close();
  }
});
