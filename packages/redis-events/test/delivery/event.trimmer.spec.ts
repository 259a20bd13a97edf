import { Logger } from '@nestjs/common';
import { jest } from '@jest/globals';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { EventTrimmer, type TrimmerOptions } from '../../src/delivery/event.trimmer.js';
import { EventStreamScripts } from '../../src/scripts/event-stream.scripts.js';
import { BackgroundLimiter } from '../../src/timing/background.limiter.js';
import {
  DEAD_LETTERS,
  GRACE,
  MINUTE,
  RETENTION,
  type SteppableStore,
  Store,
} from '../../../session-redis/test/support/store.fixture.js';
import { SESSION_ENTRIES, sessionEvents } from '../../../session-redis/test/support/event-scripts.js';
import { trimOnce } from '../../../session-redis/test/support/trim-once.js';

LeakGuard.install();

let store: SteppableStore;
let scripts: EventStreamScripts;
beforeAll(async () => {
  store = await Store.openSteppable();
  scripts = new EventStreamScripts(store.client, SESSION_ENTRIES);
});
afterAll(() => store.close());
beforeEach(() => store.client.flushall());

const trimmer = (options: Partial<TrimmerOptions> = {}) =>
  new EventTrimmer(
    store.client,
    scripts,
    store.partitions,
    { grace: GRACE, retention: RETENTION, maxLength: 1_000_000, lease: 30_000, deadLetters: DEAD_LETTERS, ...options },
    new BackgroundLimiter(),
    sessionEvents(),
  );

const later = (minutes: number) => store.server.stepClock(minutes * MINUTE);

/** Sessions that were created and have ended: two events each. */
async function endSessions(count: number): Promise<string[]> {
  const ids = await Promise.all(Array.from({ length: count }, () => store.create({ cart: '"apple"' })));
  for (const id of ids) expect(await store.scripts.delete(id)).toEqual({ outcome: 'deleted' });
  return ids;
}

const length = () => store.client.xlen(store.keys.events);
const hasData = async (id: string) => (await store.client.exists(store.keys.session(id))) === 1;

/** An instance of the group reads up to `count` events, and acknowledges them by default. */
async function read(group: string, count: number, { acknowledge = true, consumer = 'one' } = {}): Promise<string[]> {
  await scripts.createGroup(store.keys, group, 'oldest');
  const reply = (await store.client.xreadgroup(
    ...(['GROUP', group, consumer, 'COUNT', count, 'STREAMS', store.keys.events, '>'] as const),
  )) as [string, [string, string[]][]][] | null;
  const positions = (reply?.[0]?.[1] ?? []).map(([position]) => position);
  if (acknowledge && positions.length > 0) await store.client.xack(store.keys.events, group, ...positions);
  return positions;
}

/** As if an event had failed in a group. */
async function fail(group: string, position: string): Promise<void> {
  await store.client.hset(store.keys.failing(group), position, '{"attempts":1,"done":[]}');
  await store.client.zadd(store.keys.retries(group), 0, position);
}

const dropped = () => store.client.hgetall(store.keys.dropped);

describe('an event', () => {
  it('is removed after the grace period once all groups have handled it, with the data of its ended session', async () => {
    const [id = ''] = await endSessions(1);
    const alive = await store.create();
    for (const group of ['mail', 'audit']) await read(group, 3);
    expect(await trimOnce(trimmer())).toEqual({ removed: 0, dropped: new Map() });
    await later(5.1);
    expect(await trimOnce(trimmer())).toEqual({ removed: 3, dropped: new Map() });
    expect([await length(), await hasData(id), await hasData(alive)]).toEqual([0, false, true]);
    expect(await store.isAlive(alive)).toBe(true);
  });

  it('of an end does not remove the data of a session that is still alive', async () => {
    const alive = await store.create();
    await store.client.xadd(store.keys.events, '*', 'type', 'expired', 'session', alive, 'at', '1', 'dataLost', '1');
    await read('mail', 2);
    await later(5.1);
    expect(await trimOnce(trimmer())).toMatchObject({ removed: 2 });
    expect(await hasData(alive)).toBe(true);
  });

  it('is kept with its data while one group has not read it', async () => {
    const [first = '', second = ''] = await endSessions(2);
    await read('mail', 4);
    await read('audit', 3);
    await later(50);
    expect(await trimOnce(trimmer())).toMatchObject({ removed: 3 });
    expect([await length(), await hasData(first), await hasData(second)]).toEqual([1, false, true]);
  });

  it('is kept while one group has not finished it', async () => {
    await endSessions(2);
    const [, second = ''] = await read('mail', 4, { acknowledge: false });
    await store.client.xack(
      store.keys.events,
      'mail',
      ...(await store.client.xrange(store.keys.events, '-', '+'))
        .filter(([position]) => position !== second)
        .map(([position]) => position),
    );
    await later(50);
    expect(await trimOnce(trimmer())).toMatchObject({ removed: 1 });
    expect(await length()).toBe(3);
    await store.client.xack(store.keys.events, 'mail', second);
    expect(await trimOnce(trimmer())).toMatchObject({ removed: 3 });
  });

  it('is kept for the retention when there is no group yet', async () => {
    const [id = ''] = await endSessions(1);
    await later(59);
    expect(await trimOnce(trimmer())).toMatchObject({ removed: 0 });
    expect(await hasData(id)).toBe(true);
    expect(await read('late', 9, { acknowledge: false })).toHaveLength(2);
  });

  it('is removed after the retention although a group has not handled it, and is counted as dropped', async () => {
    await endSessions(2);
    const [first = ''] = await read('mail', 1, { acknowledge: false });
    await fail('mail', first);
    await read('audit', 4);
    await later(60.1);
    const [recent = ''] = await endSessions(1);
    expect(await trimOnce(trimmer())).toEqual({ removed: 4, dropped: new Map([['mail', 4]]) });
    expect(await dropped()).toEqual({ mail: '4' });
    expect(await store.client.xpending(store.keys.events, 'mail')).toEqual([0, null, null, null]);
    expect(await store.client.exists(store.keys.failing('mail'), store.keys.retries('mail'))).toBe(0);
    expect([await length(), await hasData(recent)]).toEqual([2, true]);
  });

  it('stays for a slow group with a living instance over a whole retention, and after it has lost some', async () => {
    await endSessions(20);
    await read('quick', 100);
    let slow = 0;
    for (let minutes = 0; minutes < 54; minutes += 18) {
      slow += (await read('slow', 1)).length;
      await later(18);
      await trimOnce(trimmer());
      // The other group has handled all of them, and they are older than the grace period.
      expect(await length()).toBe(40 - slow);
    }
    await endSessions(5);
    await read('quick', 100);
    await later(7);
    expect(await trimOnce(trimmer())).toEqual({ removed: 37, dropped: new Map([['slow', 37]]) });
    // What it has read last is older than the retention, and older than what was removed.
    for (let minutes = 0; minutes < 30; minutes += 10) {
      await later(10);
      expect(await trimOnce(trimmer())).toMatchObject({ removed: 0 });
    }
    expect(await read('slow', 100)).toHaveLength(10);
  });

  it('is removed with its data when there are too many, the oldest first', async () => {
    const ids = await endSessions(3);
    await read('mail', 2);
    expect(await trimOnce(trimmer({ maxLength: 3 }))).toEqual({ removed: 3, dropped: new Map([['mail', 1]]) });
    expect(await length()).toBe(3);
    expect(await read('mail', 9)).toHaveLength(3);
    // All were created before the first ended.
    for (const id of ids) expect(await hasData(id)).toBe(true);
    expect(await trimOnce(trimmer({ maxLength: 1 }))).toMatchObject({ removed: 2 });
    expect(await Promise.all(ids.map(hasData))).toEqual([false, false, true]);
  });
});

describe('creations', () => {
  const create = (count: number) => Promise.all(Array.from({ length: count }, () => store.create()));

  async function kept(): Promise<{ creations: number; ends: string[] }> {
    const entries = await store.client.xrange(store.keys.events, '-', '+');
    const created = entries.filter(([, [, type]]) => type === 'created');
    const ends = entries.filter(([, [, type]]) => type === 'deleted').map(([, fields]) => fields[3]!);
    return { creations: created.length, ends };
  }

  it('go before ends when there are too many events, the oldest first, wherever they stand', async () => {
    const victim = await store.create({ cart: '"apple"' });
    await read('mail', 1, { acknowledge: false });
    await create(60);
    await store.scripts.delete(victim);
    await create(299);
    const youngest = await store.create();
    // The one that is being handled counts as dropped as well.
    const first = await trimOnce(trimmer({ maxLength: 100 }));
    expect(first).toEqual({ removed: 262, dropped: new Map([['mail', 262]]) });
    expect(await kept()).toEqual({ creations: 99, ends: [victim] });
    expect([await hasData(victim), await store.eventTypes(youngest)]).toEqual([true, ['created']]);
    expect(await store.client.xpending(store.keys.events, 'mail')).toEqual([0, null, null, null]);
    expect(await trimOnce(trimmer({ maxLength: 100 }))).toMatchObject({ removed: 0 });
    await create(50);
    expect(await trimOnce(trimmer({ maxLength: 100 }))).toMatchObject({ removed: 50 });
    expect(await kept()).toEqual({ creations: 99, ends: [victim] });
  });

  it('that failed are no longer retried when they have made room for ends', async () => {
    await create(1);
    const [position = ''] = await read('mail', 1, { acknowledge: false });
    await fail('mail', position);
    await endSessions(1);
    expect(await trimOnce(trimmer({ maxLength: 1 }))).toEqual({ removed: 2, dropped: new Map([['mail', 2]]) });
    expect(await store.client.exists(store.keys.failing('mail'), store.keys.retries('mail'))).toBe(0);
  });

  it('leave the oldest ends to go when there are too many ends', async () => {
    const ids = await endSessions(4);
    await create(2);
    expect(await trimOnce(trimmer({ maxLength: 3 }))).toMatchObject({ removed: 7 });
    expect(await kept()).toEqual({ creations: 0, ends: ids.slice(1) });
    const more = await endSessions(2);
    expect(await trimOnce(trimmer({ maxLength: 3 }))).toMatchObject({ removed: 4 });
    expect(await kept()).toEqual({ creations: 0, ends: [ids[3], ...more] });
    expect(await store.client.exists(store.keys.thinned)).toBe(1);
    await later(61);
    await trimOnce(trimmer());
    expect([await length(), await store.client.exists(store.keys.thinned)]).toEqual([0, 0]);
  });

  it('that a slow group has not read go a grace period early, so that it reads the ends in time', async () => {
    await read('slow', 9);
    const [first = ''] = await create(100);
    const ended = await endSessions(60);
    await read('slow', 1, { acknowledge: false });
    await later(54);
    expect(await trimOnce(trimmer())).toMatchObject({ removed: 0 });
    await later(2);
    const young = await store.create();
    expect(await trimOnce(trimmer())).toEqual({ removed: 159, dropped: new Map([['slow', 159]]) });
    // It is handling the first one, which is in nobody's way.
    expect([await store.eventTypes(first), await store.eventTypes(young)]).toEqual([['created'], ['created']]);
    expect(await kept()).toEqual({ creations: 2, ends: ended });
    expect(await read('slow', 100)).toHaveLength(61);
    await later(5);
    expect(await trimOnce(trimmer())).toMatchObject({ removed: 62, dropped: new Map([['slow', 1]]) });
  });

  it('are kept for the retention for groups that only wait', async () => {
    await read('mail', 9);
    await create(2);
    await read('mail', 2, { acknowledge: false });
    await later(59);
    expect(await trimOnce(trimmer())).toMatchObject({ removed: 0 });
    await store.client.del(store.keys.events);
    await read('away', 9);
    await store.client.xgroup('DELCONSUMER', store.keys.events, 'away', 'one');
    await create(2);
    await later(59);
    expect(await trimOnce(trimmer())).toMatchObject({ removed: 0 });
    expect(await length()).toBe(2);
  });

  it('make room for ends in a stream that was created again at an earlier time', async () => {
    await endSessions(3);
    expect(await trimOnce(trimmer({ maxLength: 4 }))).toMatchObject({ removed: 2 });
    await store.client.del(store.keys.events);
    await later(-70);
    const ids = await endSessions(3);
    expect(await trimOnce(trimmer({ maxLength: 3 }))).toMatchObject({ removed: 3 });
    expect(await kept()).toEqual({ creations: 0, ends: ids });
  });
});

describe('an absent group', () => {
  it('holds back trimming for the retention, and not again until it reads', async () => {
    await read('away', 9);
    await endSessions(1);
    await read('away', 1);
    for (let minutes = 10; minutes <= 110; minutes += 10) {
      await later(6);
      await endSessions(1);
      await later(4);
      await read('there', 100);
      await trimOnce(trimmer());
      // Everything up to the retention is kept; after that, what is younger than the grace.
      expect(await length()).toBe(minutes < 60 ? 1 + (minutes / 10) * 2 : minutes === 60 ? 12 : 2);
    }
    expect(Number((await dropped())['away'])).toBeGreaterThan(20);
    // The group is back: its unread events are kept again.
    await read('away', 100);
    await endSessions(1);
    await read('there', 100);
    await later(30);
    await trimOnce(trimmer());
    expect(await read('away', 100)).toHaveLength(2);
  });

  it('holds back trimming although more events were recorded than are kept', async () => {
    await endSessions(5);
    await read('slow', 1);
    await read('quick', 100);
    await store.client.xgroup('SETID', store.keys.events, 'slow', '0');
    await later(10);
    expect(await trimOnce(trimmer({ maxLength: 8 }))).toMatchObject({ removed: 2 });
    expect(await trimOnce(trimmer({ maxLength: 8 }))).toMatchObject({ removed: 0 });
    expect(await read('slow', 100)).toHaveLength(8);
  });

  it('holds back trimming when it was created after a trim and has read nothing', async () => {
    await endSessions(1);
    await read('there', 9);
    await later(70);
    expect(await trimOnce(trimmer())).toMatchObject({ removed: 2 });
    expect(await scripts.createGroup(store.keys, 'new', 'oldest')).toBe('created');
    await endSessions(1);
    await read('there', 9);
    await later(30);
    await trimOnce(trimmer());
    expect(await read('new', 9)).toHaveLength(2);
  });
});

it('a stream that was deleted and restarts at an earlier time counts as untrimmed', async () => {
  await endSessions(1);
  await read('there', 9);
  await later(61);
  expect(await trimOnce(trimmer())).toMatchObject({ removed: 2 });
  await store.client.del(store.keys.events);
  await later(-70);
  await endSessions(1);
  await read('there', 9);
  expect(await read('new', 9)).toHaveLength(2);
  await endSessions(1);
  expect(await read('there', 9)).toHaveLength(2);
  await later(10);
  expect(await trimOnce(trimmer())).toMatchObject({ removed: 2 });
  expect(await read('new', 9)).toHaveLength(2);
});

it('several trimmers at once trim in batches without counting an event twice', async () => {
  await endSessions(500);
  await read('mail', 1000);
  await read('audit', 600, { acknowledge: false });
  await later(61);
  const results = await Promise.all([trimOnce(trimmer()), trimOnce(trimmer()), trimOnce(trimmer())]);
  expect(results.reduce((sum, { removed }) => sum + removed, 0)).toBe(1000);
  expect(results.reduce((sum, result) => sum + (result.dropped.get('audit') ?? 0), 0)).toBe(1000);
  expect(await dropped()).toEqual({ audit: '1000' });
  const [first] = await store.client.xrange(store.keys.events, '-', '+', 'COUNT', 1);
  expect(first).toBeUndefined();
  expect((await store.client.keys('*')).sort()).toEqual(
    [store.keys.events, store.keys.dropped, store.keys.trimmed, store.keys.wanted].sort(),
  );
});

it('trimming continues despite stray keys and events removed by others', async () => {
  const [first = '', second = ''] = await endSessions(2);
  const positions = await read('mail', 9, { acknowledge: false });
  await store.client.set(store.keys.failing('mail'), 'foreign');
  await store.client.del(store.keys.session(first));
  await store.client.set(store.keys.session(first), 'foreign');
  await store.client.xtrim(store.keys.events, 'MAXLEN', 1);
  await store.client.xack(store.keys.events, 'mail', positions[3]!);
  await later(6);
  expect(await trimOnce(trimmer())).toEqual({ removed: 1, dropped: new Map() });
  expect([await length(), await hasData(second)]).toEqual([0, false]);
  expect(await store.client.get(store.keys.session(first))).toBe('foreign');
  expect(await store.client.xpending(store.keys.events, 'mail')).toEqual([0, null, null, null]);
});

it('instances that ended without leaving their group are removed, unless they have pending events', async () => {
  await endSessions(1);
  await read('mail', 1, { consumer: 'finished' });
  await read('mail', 1, { consumer: 'unfinished', acknowledge: false });
  await later(59);
  await trimOnce(trimmer());
  expect(await store.client.xinfo('CONSUMERS', store.keys.events, 'mail')).toHaveLength(2);
  await later(2);
  await trimOnce(trimmer({ retention: 2 * RETENTION }));
  const consumers = (await store.client.xinfo('CONSUMERS', store.keys.events, 'mail')) as string[][];
  expect(consumers.map(([, name]) => name)).toEqual(['unfinished']);
});

it('instances that ended are removed only after two leases, however long these are', async () => {
  await endSessions(1);
  await read('mail', 2, { consumer: 'finished' });
  const job = trimmer({ lease: 60 * MINUTE, retention: 4 * RETENTION });
  const consumers = () => store.client.xinfo('CONSUMERS', store.keys.events, 'mail');
  await later(119);
  await trimOnce(job);
  expect(await consumers()).toHaveLength(1);
  await later(2);
  await trimOnce(job);
  expect(await consumers()).toEqual([]);
});

describe('the log', () => {
  const lines: string[] = [];
  const spies = (['log', 'warn'] as const).map((level) =>
    jest.spyOn(Logger.prototype, level).mockImplementation((line) => void lines.push(String(line))),
  );
  beforeEach(() => lines.splice(0));
  afterAll(() => spies.forEach((spy) => spy.mockRestore()));

  it('has one line for an unread group, one for its removed events, and one when it is read again', async () => {
    const job = trimmer();
    await read('reports', 9);
    await endSessions(1);
    await trimOnce(job);
    expect(lines).toEqual([]);
    for (let minutes = 0; minutes < 50; minutes += 10) {
      await later(10);
      await trimOnce(job);
    }
    expect(lines.splice(0)).toEqual([expect.stringMatching(/^Nobody reads the events of group "reports"/)]);
    for (let minutes = 0; minutes < 50; minutes += 10) {
      await later(10);
      await endSessions(1);
      await trimOnce(job);
    }
    expect(lines.splice(0)).toEqual([
      expect.stringMatching(/^2 events were removed that group "reports" had not handled.*only counted/),
    ]);
    await read('reports', 9);
    await trimOnce(job);
    await trimOnce(job);
    expect(lines).toEqual(['The events of group "reports" are read again']);
  });

  it('names an unread group again that was removed and created anew, beside one that stays', async () => {
    const job = trimmer();
    for (let round = 0; round < 2; round++) {
      await read('reports', 9);
      await read('there', 9);
      await endSessions(1);
      await later(10);
      await read('there', 9);
      await trimOnce(job);
      await store.client.xgroup('DESTROY', store.keys.events, 'reports');
      await trimOnce(job);
    }
    const line: unknown = expect.stringMatching(/^Nobody reads the events of group "reports"/);
    expect(lines).toEqual([line, line]);
  });

  it('names each of two unread groups once, and has one line for the removed events of each', async () => {
    const job = trimmer();
    const both = ['audit', 'reports'];
    for (const group of both) await read(group, 9);
    for (let round = 0; round < 2; round++) {
      await endSessions(1);
      await later(10);
      await trimOnce(job);
    }
    expect(lines.splice(0)).toEqual(
      both.map((group) => expect.stringContaining(`reads the events of group "${group}"`)),
    );
    for (let round = 0; round < 2; round++) {
      await later(61);
      await endSessions(1);
      await trimOnce(job);
    }
    expect(lines.splice(0)).toEqual(both.map((group) => expect.stringContaining(`removed that group "${group}" had`)));
    await read('reports', 9);
    await trimOnce(job);
    expect(lines.splice(0)).toEqual(['The events of group "reports" are read again']);
    await endSessions(1);
    await later(10);
    await trimOnce(job);
    expect(lines).toEqual([expect.stringContaining('reads the events of group "reports"')]);
  });

  it('has nothing of an aborted pass, which removes nothing', async () => {
    await read('reports', 9);
    await endSessions(2);
    await later(10);
    const job = trimmer({ maxLength: 1 });
    expect(await trimOnce(job, { signal: AbortSignal.abort() })).toMatchObject({ removed: 0 });
    expect([await length(), lines]).toEqual([4, []]);
  });

  it('has the number of removed events that an active group had not handled', async () => {
    const job = trimmer({ maxLength: 2 });
    await read('slow', 9);
    for (let i = 0; i < 2; i++) {
      await endSessions(2);
      await read('slow', 1, { acknowledge: false });
      await trimOnce(job);
    }
    expect(lines).toEqual([
      expect.stringMatching(/^2 events were removed that group "slow" had not handled/),
      expect.stringMatching(/^4 events were removed that group "slow" had not handled/),
    ]);
  });
});
