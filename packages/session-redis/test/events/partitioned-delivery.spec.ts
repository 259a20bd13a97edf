import { jest } from '@jest/globals';
import { Injectable, type Type } from '@nestjs/common';
import { OnSessionEvent, SessionCreatedEvent, SessionDeletedEvent } from '@nest-session/core';
import { type RedisSessionModuleOptions, SessionEventGroups } from '@nest-session/redis';
import { Gate, LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { EventLoader } from '../../../redis-events/src/delivery/event-producer.js';
import { EventTrimmer } from '../../../redis-events/src/delivery/event.trimmer.js';
import type { SessionKeys } from '../../src/keys/session-keys.js';
import { broadcastCache } from '../support/broadcast.cache.js';
import { EventInstance, type EventInstanceOptions } from '../support/event-instance.fixture.js';
import { LineRecorder } from '../support/line.recorder.js';
import { GRACE, MINUTE, type SteppableStore, Store } from '../support/store.fixture.js';
import { trimOnce } from '../support/trim-once.js';

LeakGuard.install();

const PARTITIONS = 8;
const GROUP = 'default';
// Fewer places than there are partitions.
const CONCURRENCY = 3;
const NEVER = '0 0 0 29 2 *';

let store: SteppableStore;
let instances: EventInstance[] = [];
beforeAll(async () => {
  store = await Store.openSteppable({ partitions: PARTITIONS });
});
afterEach(async () => {
  await stopAll();
  EventInstance.log.lines.length = 0;
  await store.client.flushall();
});
afterAll(() => store.close());

async function start(
  provider: Type | undefined,
  options: RedisSessionModuleOptions = {},
  pace: EventInstanceOptions['pace'] = {},
): Promise<EventInstance> {
  const events = { concurrency: CONCURRENCY, attempts: 2, ...options.events };
  const redis = { url: store.server.url, partitions: PARTITIONS, cleanup: { cron: NEVER }, ...options, events };
  const instance = await EventInstance.start({ redis, pace, providers: provider ? [provider] : [] });
  instances.push(instance);
  return instance;
}

async function stopAll(): Promise<void> {
  for (const instance of instances) await instance.stop();
  instances = [];
}

const trim = ({ module }: EventInstance) => trimOnce(module.get(EventTrimmer));
const groupsOf = ({ module }: EventInstance) => module.get(SessionEventGroups);

/** The id of a session in a partition. */
function idIn(partition: number): string {
  const id = store.id();
  return store.partitions.of(id) === store.partitions.all[partition] ? id : idIn(partition);
}

/** Puts a stray key in place of an events stream, and tells that there is something to read. */
async function replaceByStrayKey(events: string): Promise<void> {
  await store.client.del(events);
  await store.client.set(events, 'foreign');
  await store.client.spublish(events, 'events');
}

/** Creates and ends a session in each partition, `after` ms at the earliest; their ids. */
async function endSessions({ after = 0 } = {}): Promise<string[]> {
  const ids: string[] = [];
  for (let partition = 0; partition < PARTITIONS; partition++) {
    ids.push(await store.create({ cart: '"apple"' }, { id: idIn(partition) }));
  }
  if (after > 0) await store.server.stepClock(after);
  for (const id of ids) await store.scripts.delete(id);
  return ids;
}

/** Records an event at the given position of each partition. */
async function recordAt(position: string): Promise<string[]> {
  const ids = Array.from({ length: PARTITIONS }, (_, partition) => idIn(partition));
  for (const id of ids) {
    await store.client.xadd(store.partitions.of(id).events, position, 'type', 'deleted', 'session', id, 'at', '1');
  }
  return ids;
}

describe('an instance', () => {
  it('handles each event of all partitions once, within its concurrency', async () => {
    const handled: string[] = [];
    const running = new Set<() => void>();
    @Injectable()
    class Handlers {
      @OnSessionEvent(SessionDeletedEvent)
      async handle({ sessionId }: SessionDeletedEvent) {
        handled.push(sessionId);
        await new Promise<void>((resolve) => running.add(resolve));
      }
    }
    const ids = [...(await endSessions()), ...(await endSessions()), ...(await endSessions())];
    await start(Handlers);
    for (let left = ids.length; left > 0; left -= CONCURRENCY) {
      await eventually(() => expect(running.size).toBe(Math.min(left, CONCURRENCY)));
      if (left > CONCURRENCY) expect(await store.pending(GROUP)).toBe(CONCURRENCY);
      const finish = [...running];
      running.clear();
      finish.forEach((each) => each());
    }
    await eventually(async () => expect(await store.pending(GROUP)).toBe(0));
    expect(handled.sort()).toEqual(ids.sort());
  });

  it('handles the events of other partitions while a node sends no data for as many as it has places', async () => {
    const handled: string[] = [];
    @Injectable()
    class Handlers {
      @OnSessionEvent(SessionDeletedEvent)
      handle({ sessionId }: SessionDeletedEvent) {
        handled.push(sessionId);
      }
    }
    const [silent, other] = store.partitions.all;
    const { load } = EventLoader.prototype;
    const gate = new Gate();
    const loads = jest.spyOn(EventLoader.prototype, 'load');
    loads.mockImplementation(async function (this: EventLoader, entry, attempt) {
      if (entry.partition.prefix === silent!.prefix) await gate.pass();
      return load.call(this, entry, attempt);
    });
    const add = async ({ events }: SessionKeys, id: string) => {
      await store.client.xadd(events, '*', 'type', 'deleted', 'session', id, 'at', '1');
      await store.client.spublish(events, 'events');
    };
    try {
      for (let i = 0; i < CONCURRENCY; i++) await add(silent!, idIn(0));
      await start(Handlers);
      await eventually(() => expect(loads).toHaveBeenCalledTimes(CONCURRENCY));
      const id = idIn(1);
      await add(other!, id);
      await eventually(() => expect(handled).toEqual([id]));
    } finally {
      gate.open();
      loads.mockRestore();
    }
    await eventually(() => expect(handled).toHaveLength(1 + CONCURRENCY));
  });

  it('receives an event that is recorded while it waits, in any partition', async () => {
    const handled: string[] = [];
    @Injectable()
    class Handlers {
      @OnSessionEvent(SessionDeletedEvent)
      handle({ sessionId }: SessionDeletedEvent) {
        handled.push(sessionId);
      }
    }
    await start(Handlers);
    await eventually(async () => expect(await store.readers()).toBe(1));
    for (let partition = 0; partition < PARTITIONS; partition++) {
      const id = await store.create({}, { id: idIn(partition) });
      await store.scripts.delete(id);
      await eventually(() => expect(handled.at(-1)).toBe(id));
    }
  });

  it('leaves its group in all partitions and releases its unfinished events to others', async () => {
    const begun: string[] = [];
    @Injectable()
    class Hanging {
      @OnSessionEvent(SessionDeletedEvent)
      async handle({ sessionId }: SessionDeletedEvent) {
        begun.push(sessionId);
        await new Promise(() => undefined);
      }
    }
    const ids = await endSessions();
    await start(Hanging, { events: { shutdownTimeout: '50ms', lease: '1h' } });
    await eventually(() => expect(begun).toHaveLength(CONCURRENCY));
    await stopAll();
    expect(await store.consumers(GROUP)).toEqual(['retries']);
    const handled: string[] = [];
    @Injectable()
    class Handlers {
      @OnSessionEvent(SessionDeletedEvent)
      handle({ sessionId }: SessionDeletedEvent) {
        handled.push(sessionId);
      }
    }
    await start(Handlers);
    await eventually(async () => expect(new Set(handled)).toEqual(new Set(ids)));
    await eventually(async () => expect(await store.pending(GROUP)).toBe(0));
    expect(handled).toHaveLength(ids.length);
    await stopAll();
    expect(await store.consumers(GROUP)).toEqual(['retries']);
  });
});

describe('events at the same position in several partitions', () => {
  it('are handled, retried, moved to the dead letters and replayed independently', async () => {
    const seen: string[] = [];
    let isBroken = true;
    @Injectable()
    class Reminders {
      @OnSessionEvent(SessionDeletedEvent)
      mail({ sessionId }: SessionDeletedEvent) {
        seen.push(sessionId);
        if (isBroken) throw new Error(`no mail for ${sessionId}`);
      }
    }
    const ids = await recordAt('7-1');
    const groups = groupsOf(await start(Reminders));
    await eventually(async () => expect(await groups.deadLetters()).toHaveLength(PARTITIONS));
    expect(seen.sort()).toEqual([...ids, ...ids].sort());

    const letters = await groups.deadLetters();
    expect(new Set(letters.map(({ id }) => id)).size).toBe(PARTITIONS);
    for (const { event, reason, attempts } of letters) {
      expect(reason).toBe(`Reminders.mail: Error: no mail for ${event!.sessionId}`);
      expect(attempts).toBe(2);
    }
    isBroken = false;
    seen.length = 0;
    const replayed = letters[PARTITIONS - 1]!;
    expect(await groups.replay(replayed.id)).toBe('replayed');
    await eventually(() => expect(seen).toEqual([replayed.event!.sessionId]));
    expect(await groups.replay(replayed.id)).toBe('gone');
    expect(await groups.discard(letters[0]!.id)).toBe(true);
    expect((await groups.deadLetters()).map(({ id }) => id)).toEqual(letters.slice(1, -1).map(({ id }) => id));
    expect(await groups.replayAll()).toBe(PARTITIONS - 2);
    await eventually(() => expect(new Set(seen).size).toBe(PARTITIONS - 1));
    await eventually(async () => expect(await store.pending(GROUP)).toBe(0));
    expect(seen).toHaveLength(PARTITIONS - 1);
  });
});

describe('SessionEventGroups', () => {
  let groups: SessionEventGroups;
  beforeEach(async () => {
    groups = groupsOf(await start(undefined));
  });

  /** Records a dead letter at the given position. */
  const setAside = (partition: number, position: string, group = 'mail') =>
    store.client.xadd(store.partitions.all[partition]!.deadLetters, position, 'group', group, 'reason', position);

  it('sums up the state of a group over all partitions', async () => {
    expect(await groups.create('mail')).toBe(true);
    expect(await groups.create('mail')).toBe(false);
    const since = await store.now();
    await endSessions({ after: MINUTE });
    const { all } = store.partitions;
    for (const [i, keys] of all.entries()) {
      const args = ['GROUP', 'mail', i < 2 ? 'one' : 'two', 'COUNT', 1, 'STREAMS', keys.events, '>'] as const;
      if (i < 4) await store.client.xreadgroup(...args);
      await store.client.hset(keys.dropped, 'mail', 10);
      await store.client.hset(keys.lostDeadLetters, 'mail', 2);
      await store.client.zadd(keys.retries('mail'), Number.MAX_SAFE_INTEGER, '1-1');
    }
    const [group, ...others] = await groups.list();
    expect(others).toEqual([]);
    expect(group).toEqual({
      name: 'mail',
      lag: 2 * PARTITIONS - 4,
      oldestUnread: expect.any(Number),
      pending: 4,
      retrying: PARTITIONS,
      dropped: 10 * PARTITIONS,
      lostDeadLetters: 2 * PARTITIONS,
      consumers: [
        { name: 'one', pending: 2, idle: expect.any(Number) },
        { name: 'two', pending: 2, idle: expect.any(Number) },
      ],
    });
    // In half of the partitions it is an event that was recorded before the clock step.
    expect(group!.oldestUnread! - since).toBeLessThan(MINUTE);
  });

  it('takes an instance for dead after ten seconds without a sign of life, however short its lease is', async () => {
    const { module } = await start(undefined, { events: { lease: '1s' } });
    const brief = module.get(SessionEventGroups);
    await brief.create('mail');
    const { events } = store.partitions.all[0]!;
    await store.client.xgroup('CREATECONSUMER', events, 'mail', 'one');
    await store.server.stepClock(5000);
    expect(await brief.remove('mail')).toBe('live');
    await store.server.stepClock(6000);
    expect(await brief.remove('mail')).toBe('removed');
  });

  it('removes a group in all partitions, and in none while an instance is active in one', async () => {
    await groups.create('mail');
    const last = store.partitions.all[PARTITIONS - 1]!;
    await endSessions();
    await store.client.xreadgroup('GROUP', 'mail', 'one', 'COUNT', 1, 'STREAMS', last.events, '>');
    expect(await groups.remove('mail')).toBe('live');
    expect(await groups.list()).toMatchObject([{ lag: 2 * PARTITIONS - 1, pending: 1 }]);
    await store.client.xgroup('DELCONSUMER', last.events, 'mail', 'one');
    expect(await groups.remove('mail')).toBe('removed');
    expect(await groups.list()).toEqual([]);
    expect(await groups.remove('mail')).toBe('unknown');
  });

  it('lists dead letters in time order and continues after any of them', async () => {
    const expected: string[] = [];
    // Some at the same position, and more in one partition than one read returns.
    for (let time = 1; time <= 30; time++) {
      for (const partition of time % 3 === 0 ? [1, 4, 6] : [time % 2]) {
        await setAside(partition, `${time}-1`, time % 2 === 0 ? 'mail' : 'audit');
        expected.push(`${time}-1`);
      }
    }
    const all = await groups.deadLetters();
    expect(all.map(({ reason }) => reason)).toEqual(expected);
    expect(all.map(({ at }) => at)).toEqual(expected.map((position) => Number(position.split('-')[0])));
    for (const [i, { id }] of all.entries()) {
      expect(await groups.deadLetters({ after: id, limit: 4 })).toEqual(all.slice(i + 1, i + 5));
    }
    const mail = await groups.deadLetters({ group: 'mail' });
    expect(mail).toEqual(all.filter(({ group }) => group === 'mail'));
    expect(await groups.discardAll({ group: 'mail' })).toBe(mail.length);
    expect(await groups.discardAll()).toBe(all.length - mail.length);
    expect(await groups.deadLetters()).toEqual([]);
  });

  it.each(['replay', 'discard'] as const)(
    '%ss all dead letters that are there, and none that comes meanwhile',
    async (way) => {
      await groups.create('mail');
      // More than one read returns, and none in some partitions.
      for (let i = 1; i <= 30; i++) for (const partition of [0, 3]) await setAside(partition, `${i}-1`);
      const one = groups[way].bind(groups);
      let later = 0;
      const meanwhile = async (id: string) => {
        // Not for ever, where that matters.
        if (later++ < 100) for (const partition of [0, 1, 3]) await setAside(partition, `${30 + later}-1`);
        return one(id);
      };
      Object.assign(groups, { [way]: meanwhile });
      expect(await groups[`${way}All`]()).toBe(60);
      expect(later).toBe(60);
      const left = await groups.deadLetters({ limit: 1000 });
      expect(left).toHaveLength(180);
      expect(Math.min(...left.map(({ at }) => at))).toBe(31);
    },
  );

  it.each(['', '1-1', '1-1-99', 'x', '1-1-x', `1-1-${PARTITIONS}`, '1-1-0; DEL', '9'.repeat(30)])(
    'knows no dead letter with the id %j',
    async (id) => {
      await setAside(0, '1-1');
      expect(await groups.replay(id)).toBe('gone');
      expect(await groups.discard(id)).toBe(false);
      await expect(groups.deadLetters({ after: id })).rejects.toMatchObject({
        name: 'RangeError',
        message: '`after` must be the id of a dead letter',
      });
      expect(await groups.deadLetters()).toHaveLength(1);
    },
  );
});

describe('a group', () => {
  it('says once that one partition cannot be read, and once that it can, while it handles the events of others', async () => {
    const handled: string[] = [];
    @Injectable()
    class Handlers {
      @OnSessionEvent(SessionDeletedEvent)
      handle({ sessionId }: SessionDeletedEvent) {
        handled.push(sessionId);
      }
    }
    await start(Handlers);
    const log = new LineRecorder().install();
    const said = () => log.matching(/Events (cannot be|are) read/);
    const isHandled = async (partition: number) => {
      const id = await store.create({}, { id: idIn(partition) });
      await store.scripts.delete(id);
      await eventually(() => handled.includes(id));
    };
    // At which it looks last for events of other instances.
    const last = PARTITIONS - 1;
    const { events } = store.partitions.all[last]!;
    await isHandled(last);
    await replaceByStrayKey(events);
    await eventually(() => expect(said()).toHaveLength(1));
    for (let round = 1; round <= 5; round++) await isHandled(1);
    expect(said()).toEqual([expect.stringMatching(/^Events cannot be read, retrying: .*WRONGTYPE/)]);
    await store.client.del(events);
    await isHandled(last);
    await eventually(() => expect(said()).toHaveLength(2));
    expect(said()[1]).toMatch(/^Events are read again/);
  });

  it('retries in the other partitions while one cannot be read', async () => {
    const attempts: string[] = [];
    @Injectable()
    class Handlers {
      @OnSessionEvent(SessionDeletedEvent)
      handle({ sessionId }: SessionDeletedEvent) {
        attempts.push(sessionId);
        if (attempts.length === 1) throw new Error('once');
      }
    }
    const { events } = store.partitions.all[0]!;
    await start(Handlers, {}, { pollInterval: 50 });
    const log = new LineRecorder().install();
    await replaceByStrayKey(events);
    await eventually(() => expect(log.matching(/Events cannot be read/)).toHaveLength(1));
    const id = await store.create({}, { id: idIn(1) });
    await store.scripts.delete(id);
    await eventually(() => expect(attempts).toEqual([id]));
    await store.server.stepClock(MINUTE);
    await eventually(() => expect(attempts).toEqual([id, id]));
  });
});

describe('trimming', () => {
  it('keeps `events.maxLength` events of all partitions together', async () => {
    const instance = await start(undefined, { events: { maxLength: 2 * PARTITIONS } });
    await groupsOf(instance).create('away');
    for (let i = 0; i < 3; i++) await endSessions();
    expect(await trim(instance)).toEqual({ removed: 4 * PARTITIONS, dropped: new Map([['away', 4 * PARTITIONS]]) });
    expect(await groupsOf(instance).list()).toMatchObject([{ lag: 2 * PARTITIONS, dropped: 4 * PARTITIONS }]);
    expect(EventInstance.log.matching(/events were removed that group "away" had not handled/)).toEqual([
      expect.stringContaining(`${4 * PARTITIONS} events`),
    ]);
  });

  it('logs an unread group once, but not a group that is read in one partition', async () => {
    const instance = await start(undefined);
    await groupsOf(instance).create('away');
    await groupsOf(instance).create('present');
    await endSessions();
    await store.server.stepClock(GRACE + MINUTE);
    const [first] = store.partitions.all;
    await store.client.xreadgroup('GROUP', 'present', 'one', 'COUNT', 1, 'STREAMS', first!.events, '>');
    for (let i = 0; i < 2; i++) await trim(instance);
    expect(EventInstance.log.matching(/Nobody reads the events of group/)).toEqual([expect.stringContaining('"away"')]);
  });

  it('removes an instance that is gone from all partitions, but not one that is active in one', async () => {
    const instance = await start(undefined);
    await groupsOf(instance).create('mail');
    for (const { events } of store.partitions.all) {
      for (const name of ['gone', 'present']) await store.client.xgroup('CREATECONSUMER', events, 'mail', name);
    }
    await store.server.stepClock(61 * MINUTE);
    const [first] = store.partitions.all;
    await store.client.xadd(first!.events, '*', 'type', 'created');
    await store.client.xreadgroup('GROUP', 'mail', 'present', 'COUNT', 1, 'STREAMS', first!.events, '>');
    await trim(instance);
    for (const { events } of store.partitions.all) {
      const consumers = (await store.client.xinfo('CONSUMERS', events, 'mail')) as string[][];
      expect(consumers.map(([, name]) => name)).toEqual(['present']);
    }
  });
});

describe('a broadcast', () => {
  const namesOf = (ids: readonly string[]) => ids.flatMap((id) => [`created-${id}`, `deleted-${id}`]);
  const isHeard = async (heard: readonly string[], names: readonly string[]) => {
    // By their number: a comparison with a description of the difference at each poll would block this process.
    await eventually(() => heard.length >= names.length).catch(() => undefined);
    expect(heard.toSorted()).toEqual(names.toSorted());
  };

  it('delivers each event of all partitions once, those of one session in order', async () => {
    await endSessions();
    const { heard, gaps, Cache } = broadcastCache();
    await start(Cache);
    const ids: string[] = [];
    for (let i = 0; i < 40; i++) ids.push(...(await endSessions()));
    await isHeard(heard, namesOf(ids));
    for (const id of ids) expect(heard.indexOf(`created-${id}`)).toBeLessThan(heard.indexOf(`deleted-${id}`));
    expect(gaps).toEqual([]);
  });

  it('delivers the events of one read in time order, and continues where it was after an outage', async () => {
    const proxy = await TcpProxy.start({ port: store.server.port });
    try {
      const { heard, gaps, Cache } = broadcastCache();
      await start(Cache, { url: proxy.url });
      proxy.refuse();
      proxy.cut();
      const ids = await endSessions({ after: 1000 });
      await proxy.accept();
      await eventually(() => expect(heard).toHaveLength(2 * PARTITIONS));
      expect(heard.slice(0, PARTITIONS).toSorted()).toEqual(ids.map((id) => `created-${id}`).sort());
      expect(gaps).toEqual([]);
    } finally {
      await stopAll();
      await proxy.stop();
    }
  });

  it('delivers each event of the other partitions once while one cannot be read, and says so once', async () => {
    const { heard, Cache } = broadcastCache();
    await start(Cache);
    const { events } = store.partitions.all[0]!;
    await replaceByStrayKey(events);
    const said = () => EventInstance.log.matching(/Broadcast events cannot be read/);
    await eventually(() => expect(said()).toHaveLength(1));
    const names: string[] = [];
    for (let round = 1; round <= 3; round++) {
      names.push(`created-${await store.create({}, { id: idIn(1) })}`);
      await isHeard(heard, names);
    }
    await store.client.del(events);
    for (const partition of [0, 1]) names.push(`created-${await store.create({}, { id: idIn(partition) })}`);
    await isHeard(heard, names);
    expect(said()).toHaveLength(1);
  });

  it('delivers the events of the other partitions while one cannot be told what is wanted, and says so once', async () => {
    const { heard, Cache } = broadcastCache();
    const wanted = store.partitions.all[0]!.broadcastWanted('created');
    await store.client.hset(wanted, 'foreign', '1');
    await start(Cache);
    const said = () => EventInstance.log.matching(/^error Redis could not be told that broadcast handlers want events/);
    const names: string[] = [];
    // Creations of the other partition may have gone unrecorded, and so there are gaps.
    const isDelivered = () => eventually(() => expect(heard.filter((name) => name !== 'gap')).toEqual(names));
    for (let outage = 1; outage <= 2; outage++) {
      await eventually(() => expect(said()).toHaveLength(outage));
      for (let round = 1; round <= 3; round++) {
        names.push(`created-${await store.create({}, { id: idIn(1) })}`);
        await isDelivered();
      }
      expect(said()).toHaveLength(outage);
      await store.client.del(wanted);
      await eventually(async () => expect(await store.client.exists(wanted)).toBe(1));
      names.push(`created-${await store.create({}, { id: idIn(0) })}`);
      await isDelivered();
      await store.client.del(wanted);
      await store.client.hset(wanted, 'foreign', '1');
    }
  });

  it('tells a partition what is wanted soon after it could not', async () => {
    const wanted = store.partitions.all[0]!.broadcastWanted('created');
    await store.client.hset(wanted, 'foreign', '1');
    await start(broadcastCache().Cache, {}, { wishRenewal: 60 * MINUTE });
    await store.client.del(wanted);
    await eventually(async () => expect(await store.client.exists(wanted)).toBe(1));
  });

  it('reports a gap in several partitions once, before any later event', async () => {
    const proxy = await TcpProxy.start({ port: store.server.port });
    try {
      const { heard, gaps, Cache } = broadcastCache();
      const instance = await start(undefined);
      await start(Cache, { url: proxy.url });
      const names = namesOf(await endSessions());
      await isHeard(heard, names);
      const behind = await store.now();
      // In one partition the instance has read further than in the others.
      await store.server.stepClock(MINUTE);
      names.push(`created-${await store.create({}, { id: idIn(0), interval: -1 })}`);
      await isHeard(heard, names);
      proxy.refuse();
      proxy.cut();
      await endSessions();
      await store.server.stepClock(61 * MINUTE);
      const later = namesOf(await endSessions());
      expect(await trim(instance)).toMatchObject({ removed: 4 * PARTITIONS + 1 });
      await proxy.accept();
      await isHeard(heard, [...names, 'gap', ...later]);
      expect(heard.indexOf('gap')).toBe(names.length);
      expect(gaps).toHaveLength(1);
      expect(gaps[0]!.since).toBeLessThanOrEqual(behind);
      expect(EventInstance.log.matching(/^warn Broadcast events recorded after \S+ were missed/)).toHaveLength(1);
    } finally {
      await stopAll();
      await proxy.stop();
    }
  });
});

it('ended sessions and handled events leave only the documented keys', async () => {
  const handled: string[] = [];
  @Injectable()
  class Handlers {
    @OnSessionEvent(SessionDeletedEvent)
    handle({ id }: SessionDeletedEvent) {
      handled.push(id);
      // At the first attempt.
      if (handled.filter((each) => each === id).length === 1) throw new Error('no mail');
    }

    @OnSessionEvent(SessionCreatedEvent)
    note() {}
  }
  // A canary could be among the keys.
  const instance = await start(Handlers, { notifications: 'off' });
  const ids = await endSessions();
  await eventually(() => expect(new Set(handled).size).toBe(ids.length));
  await eventually(async () => expect(await store.pending(GROUP)).toBe(0));
  await store.server.stepClock(GRACE + MINUTE);
  expect(await trim(instance)).toMatchObject({ removed: 2 * PARTITIONS });
  const { all, meta, instances } = store.partitions;
  const ofPartitions = all.flatMap(({ events, handlers, wanted, trimmed }) => [events, handlers, wanted, trimmed]);
  const documented = [meta, instances, ...ofPartitions];
  expect((await store.client.keys('*')).sort()).toEqual(documented.sort());
  expect(handled).toHaveLength(2 * ids.length);
});
