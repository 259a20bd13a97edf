import type { SessionEventType } from '@nest-session/core/internal';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { EventStreamScripts, type EntryFailure } from '../../src/scripts/event-stream.scripts.js';
import { dump } from '../../../session-redis/test/support/store.dump.js';
import { DEAD_LETTERS, MINUTE, RETENTION, Store } from '../../../session-redis/test/support/store.fixture.js';
import { entryOf, SESSION_ENTRIES } from '../../../session-redis/test/support/event-scripts.js';

LeakGuard.install();

// Longer than any test: neither ends unless the test makes it.
const LEASE = 10 * MINUTE;
const CLAIMS = { lease: LEASE, longestBackOff: 100 * MINUTE };
const RULES = {
  firstBackOff: 10 * MINUTE,
  longestBackOff: 50 * MINUTE,
  retention: RETENTION,
  deadLetters: DEAD_LETTERS,
};
const group = 'default';
const me = { group, consumer: 'me' };
const other = { group, consumer: 'other' };

let store: Store;
let scripts: EventStreamScripts;
beforeAll(async () => {
  store = await Store.open();
  scripts = new EventStreamScripts(store.client, SESSION_ENTRIES);
});
beforeEach(async () => {
  await store.client.flushall();
  await store.client.xgroup('CREATE', store.keys.events, group, '0', 'MKSTREAM');
});
afterAll(() => store.close());

/** Deletes `count` sessions; the positions of their `deleted` events. */
async function endSessions(count: number, attributes: Record<string, string> = {}): Promise<string[]> {
  for (let i = 0; i < count; i++) await store.scripts.delete(await store.create(attributes));
  const entries = await store.client.xrange(store.keys.events, '-', '+');
  const positions = entries.filter(([, [, type]]) => type === 'deleted').map(([position]) => position);
  await store.client.xdel(store.keys.events, ...entries.map(([id]) => id).filter((id) => !positions.includes(id)));
  return positions;
}

const read = ({ consumer }: typeof me, count: number) =>
  store.client.xreadgroup('GROUP', group, consumer, 'COUNT', count, 'STREAMS', store.keys.events, '>');

/** As if the lease of an event had not been renewed for that long. */
const age = ({ consumer }: typeof me, position: string, idle = LEASE) =>
  store.client.xclaim(store.keys.events, group, consumer, 0, position, 'IDLE', idle, 'JUSTID');

const sessionOf = async (position: string) => {
  const [entry] = await store.client.xrange(store.keys.events, position, position);
  return entry![1][3]!;
};

const fail = async (member: typeof me, position: string, failure: Partial<EntryFailure> = {}) =>
  scripts.fail(
    entryOf(store.keys, position, await sessionOf(position)),
    member,
    { done: [], reason: 'no mail', attempts: 10, ...failure },
    RULES,
  );

const isDue = (position: string) => store.client.zadd(store.keys.retries(group), '1', position);

async function owners(): Promise<Record<string, unknown>> {
  const pending = (await store.client.xpending(store.keys.events, group, '-', '+', 100)) as [string, string][];
  return Object.fromEntries(pending.map(([position, consumer]) => [position, consumer]));
}

const handlers = (...names: string[]) => ({ names, types: ['expired'] as const });
const positionsOf = (taken: readonly (readonly unknown[])[]) => taken.map(([position]) => position);

describe('pick-up-events', () => {
  it('returns the events due for a retry, then the abandoned ones, and no others', async () => {
    const [due, early, abandoned, held, unread] = await endSessions(5);
    await read(other, 4);
    await fail(other, due!, { done: ['Audit.write'] });
    await fail(other, early!);
    await isDue(due!);
    await age(other, abandoned!);
    const taken = await scripts.pickUpEvents(store.keys, me, CLAIMS, 100);
    expect(taken).toEqual([
      [due, expect.arrayContaining(['deleted']), 1, '{"attempts":1,"done":["Audit.write"]}'],
      [abandoned, expect.arrayContaining(['deleted']), 1, null],
    ]);
    expect(await owners()).toEqual({ [due!]: 'me', [early!]: 'retries', [abandoned!]: 'me', [held!]: 'other' });
    expect(await store.client.zrange(store.keys.retries(group), '0', '-1')).toEqual([early]);
    // The claim renews the lease.
    expect(await scripts.pickUpEvents(store.keys, other, CLAIMS, 100)).toEqual([]);
    expect(await read(me, 10)).toEqual([[store.keys.events, [[unread, expect.anything()]]]]);
  });

  it('returns as many events as requested, the earliest due first', async () => {
    const positions = await endSessions(4);
    await read(other, 4);
    for (const position of positions) await fail(other, position);
    for (const [i, position] of positions.entries()) {
      await store.client.zadd(store.keys.retries(group), 100 - i, position);
    }
    expect(positionsOf(await scripts.pickUpEvents(store.keys, me, CLAIMS, 3))).toEqual(
      positions.toReversed().slice(0, 3),
    );
    expect(positionsOf(await scripts.pickUpEvents(store.keys, me, CLAIMS, 3))).toEqual(positions.slice(0, 1));
  });

  it('returns no more events than requested when several instances have abandoned some', async () => {
    const positions = await endSessions(9);
    for (const [i, consumer] of ['one', 'two', 'three'].entries()) {
      await read({ group, consumer }, 3);
      for (const position of positions.slice(3 * i, 3 * i + 3)) await age({ group, consumer }, position);
    }
    for (const count of [4, 4, 1]) {
      expect(await scripts.pickUpEvents(store.keys, me, CLAIMS, 4)).toHaveLength(count);
    }
  });

  it('finds abandoned events behind any number of events that wait for a retry', async () => {
    const positions = await endSessions(60);
    await read(other, 60);
    const abandoned = positions.pop()!;
    for (const position of positions) {
      await fail(other, position);
      await store.client.xclaim(store.keys.events, group, 'retries', 0, position, 'IDLE', 10 * LEASE, 'JUSTID');
    }
    await age(other, abandoned);
    expect(positionsOf(await scripts.pickUpEvents(store.keys, me, CLAIMS, 2))).toEqual([abandoned]);
  });

  it('claims an event that this instance was given without receiving the reply', async () => {
    const [position] = await endSessions(1);
    await read(me, 1);
    await age(me, position!);
    expect(positionsOf(await scripts.pickUpEvents(store.keys, me, CLAIMS, 2))).toEqual([position]);
  });

  it('removes the traces of events that were removed from the stream', async () => {
    const [due, abandoned] = await endSessions(2);
    await read(other, 2);
    await fail(other, due!);
    await isDue(due!);
    await age(other, abandoned!);
    await store.client.xdel(store.keys.events, due!, abandoned!);
    expect(await scripts.pickUpEvents(store.keys, me, CLAIMS, 10)).toEqual([]);
    expect(await store.pending(group)).toBe(0);
    expect(await store.client.exists(store.keys.retries(group), store.keys.failing(group))).toBe(0);
  });
});

describe('acknowledge-events', () => {
  it('removes the traces of a handled event from the group', async () => {
    const [position] = await endSessions(1);
    await read(me, 1);
    await fail(me, position!);
    await isDue(position!);
    await scripts.pickUpEvents(store.keys, me, CLAIMS, 1);
    expect(await scripts.acknowledge(store.keys, me, [position!])).toBe('acknowledged');
    expect(await store.pending(group)).toBe(0);
    expect(await store.client.exists(store.keys.retries(group), store.keys.failing(group))).toBe(0);
  });
});

describe('acknowledge-events, for as many as `events.concurrency` allows', () => {
  it('acknowledges all of them', async () => {
    const most = 10_000;
    const adding = store.client.pipeline();
    for (let i = 0; i < most; i++) adding.xadd(store.keys.events, '*', 'type', 'deleted', 'session', 's');
    await adding.exec();
    const [[, entries] = ['', []]] = (await read(me, most)) as [string, [position: string, unknown][]][];
    const positions = entries.map(([position]) => position);
    expect(positions).toHaveLength(most);
    await fail(me, positions.at(-1)!);
    await isDue(positions.at(-1)!);
    await scripts.pickUpEvents(store.keys, me, CLAIMS, 1);
    expect(await scripts.acknowledge(store.keys, me, positions)).toBe('acknowledged');
    expect(await store.pending(group)).toBe(0);
    expect(await store.client.exists(store.keys.retries(group), store.keys.failing(group))).toBe(0);
  });
});

describe('retry-or-dead-letter', () => {
  it('doubles the back-off of each retry up to a limit, and records the handlers that have succeeded', async () => {
    const [position] = await endSessions(1);
    await read(me, 1);
    for (const [i, minutes] of [10, 20, 40, 50, 50].entries()) {
      const before = await store.now();
      expect(await fail(me, position!, { done: ['Audit.write'] })).toBe('retry');
      const since = Number(await store.client.zscore(store.keys.retries(group), position!)) - minutes * MINUTE;
      expect(since).toBeGreaterThanOrEqual(before);
      expect(since).toBeLessThanOrEqual(await store.now());
      const record = await store.client.hget(store.keys.failing(group), position!);
      expect(JSON.parse(record!)).toEqual({ attempts: i + 1, done: ['Audit.write'] });
      await isDue(position!);
      await scripts.pickUpEvents(store.keys, me, CLAIMS, 1);
    }
  });

  it('keeps the data of an ended session, but not of a live one, for the retention after each attempt', async () => {
    const [position] = await endSessions(1);
    const ended = store.keys.session(await sessionOf(position!));
    const live = await store.create({ a: '1' }, { interval: 60 });
    const [, created] = await store.client.xrange(store.keys.events, '-', '+');
    await read(me, 2);
    await store.client.pexpire(ended, MINUTE);
    await fail(me, position!);
    expect(await store.client.pttl(ended)).toBeGreaterThan(RETENTION - MINUTE);
    // An instance with a longer retention has ended the session.
    await store.client.pexpire(ended, 3 * RETENTION);
    await isDue(position!);
    await scripts.pickUpEvents(store.keys, me, CLAIMS, 1);
    expect(await fail(me, position!)).toBe('retry');
    expect(await store.client.pttl(ended)).toBeGreaterThan(2 * RETENTION);
    const before = await store.client.pexpiretime(store.keys.session(live));
    expect(await fail(me, created![0])).toBe('retry');
    expect(await store.client.pexpiretime(store.keys.session(live))).toBe(before);
  });

  it('turns the last attempt into a dead letter with the reason and a copy of the data', async () => {
    const [position] = await endSessions(1, { cart: '["apple"]' });
    const id = await sessionOf(position!);
    const [{ at } = {}] = await store.events(id);
    await read(me, 1);
    await fail(me, position!, { attempts: 2 });
    await isDue(position!);
    await scripts.pickUpEvents(store.keys, me, CLAIMS, 1);
    const last = { attempts: 2, done: ['Audit.write'], reason: 'Reminders.remind: Error: no mail' };
    expect(await fail(me, position!, last)).toBe('dead');
    const [letter] = await store.deadLetters();
    expect(letter).toEqual({
      group,
      entry: position,
      reason: 'Reminders.remind: Error: no mail',
      cause: 'revoked',
      attempts: '2',
      done: '["Audit.write"]',
      type: 'deleted',
      session: id,
      at,
      data: expect.any(String),
    });
    expect(JSON.parse(letter!['data']!)).toEqual(await store.session(id));
    expect(await store.session(id)).toMatchObject({ 'sessionAttr:cart': '["apple"]' });
    expect(await store.pending(group)).toBe(0);
    expect(await store.client.exists(store.keys.retries(group), store.keys.failing(group))).toBe(0);
  });

  it('keeps the newest dead letters when they take too many bytes', async () => {
    const positions = await endSessions(400);
    await read(me, 400);
    const few = { ...RULES, deadLetters: { ...DEAD_LETTERS, maxSize: 50_000 } };
    for (const position of positions) {
      const failure = { done: [], reason: 'no mail', attempts: 1 };
      expect(await scripts.fail(entryOf(store.keys, position, 'any'), me, failure, few)).toBe('dead');
    }
    const kept = await store.deadLetters();
    expect(kept.length).toBeGreaterThan(100);
    expect(kept.map(({ entry }) => entry)).toEqual(positions.slice(-kept.length));
    expect(await store.client.hget(store.keys.lostDeadLetters, group)).toBe(`${400 - kept.length}`);
    const bytes = Number(await store.client.memory('USAGE', store.keys.deadLetters, 'SAMPLES', 0));
    expect(bytes).toBeLessThan(1.1 * 50_000);
  });

  it('keeps the data of a replayed event, with the handlers that have succeeded', async () => {
    const fields = { type: 'deleted', session: 'gone', at: '7', group, done: '["A.a"]', data: '{"creationTime":"5"}' };
    const position = await store.client.xadd(store.keys.events, '*', ...Object.entries(fields).flat());
    await read(me, 1);
    expect(await fail(me, position!, { attempts: 1, done: ['A.a', 'B.b'] })).toBe('dead');
    expect(await store.deadLetters()).toEqual([
      { ...fields, done: '["A.a","B.b"]', entry: position, reason: 'no mail', attempts: '1' },
    ]);
  });

  it('continues despite a stray key in place of the session', async () => {
    const [position] = await endSessions(1);
    await store.client.set(store.keys.session(await sessionOf(position!)), 'planted');
    await read(me, 1);
    expect(await fail(me, position!, { attempts: 2 })).toBe('retry');
    await isDue(position!);
    await scripts.pickUpEvents(store.keys, me, CLAIMS, 1);
    expect(await fail(me, position!, { attempts: 2 })).toBe('dead');
    expect(await store.deadLetters()).toEqual([expect.objectContaining({ data: '{}' })]);
  });

  it('does nothing with a failed event that another instance has claimed or that was removed', async () => {
    const [taken, removed] = await endSessions(2);
    await read(me, 2);
    await age(me, taken!);
    await scripts.pickUpEvents(store.keys, other, CLAIMS, 1);
    expect(await fail(me, taken!)).toBe('lost');
    expect(await owners()).toMatchObject({ [taken!]: 'other' });
    const failure = { done: [], reason: '', attempts: 10 };
    await store.client.xdel(store.keys.events, removed!);
    expect(await scripts.fail(entryOf(store.keys, removed!, ''), me, failure, RULES)).toBe('lost');
    expect(await owners()).toEqual({ [taken!]: 'other' });
    expect(await store.client.exists(store.keys.retries(group), store.keys.failing(group))).toBe(0);
  });
});

it('the delivery scripts work when Redis is out of memory', async () => {
  const [retried, dead, done, held] = await endSessions(4);
  await store.client.config('SET', 'maxmemory', '1');
  try {
    await read(me, 4);
    expect(await fail(me, retried!)).toBe('retry');
    expect(await fail(me, dead!, { attempts: 1 })).toBe('dead');
    expect(await scripts.acknowledge(store.keys, me, [done!])).toBe('acknowledged');
    expect(await scripts.renewLease(store.keys, me, [held!])).toEqual(['renewed']);
    await age(me, held!);
    expect(positionsOf(await scripts.pickUpEvents(store.keys, other, CLAIMS, 10))).toEqual([held]);
    expect(await scripts.releaseEvents(store.keys, other, [])).toBe('left');
    expect(await scripts.registerHandlers(store.keys, me, handlers(), LEASE)).toEqual(['registered']);
  } finally {
    await store.client.config('SET', 'maxmemory', '0');
  }
});

describe('renew-lease', () => {
  it('renews the events that this instance still owns, and claims none back', async () => {
    const [held, taken, done] = await endSessions(3);
    await read(me, 3);
    for (const position of [held!, taken!]) await age(me, position);
    expect(positionsOf(await scripts.pickUpEvents(store.keys, other, CLAIMS, 1))).toEqual([held]);
    await scripts.acknowledge(store.keys, me, [done!]);
    expect(await scripts.renewLease(store.keys, me, [held!, taken!, done!])).toEqual(['lost', 'renewed', 'lost']);
    expect(await owners()).toEqual({ [held!]: 'other', [taken!]: 'me' });
    expect(await scripts.pickUpEvents(store.keys, other, CLAIMS, 10)).toEqual([]);
  });
});

describe('release-events', () => {
  it('releases unfinished events at once without counting an attempt, then leaves the group', async () => {
    const [kept, left] = await endSessions(2);
    await read(me, 2);
    expect(await scripts.releaseEvents(store.keys, me, [kept!])).toBe('staying');
    expect(await owners()).toEqual({ [kept!]: 'me', [left!]: 'retries' });
    expect(await scripts.pickUpEvents(store.keys, other, CLAIMS, 10)).toEqual([[left, expect.anything(), 0, null]]);
    expect(await scripts.releaseEvents(store.keys, me, [])).toBe('left');
    expect(positionsOf(await scripts.pickUpEvents(store.keys, other, CLAIMS, 10))).toEqual([kept]);
    expect(new Set(await store.consumers(group))).toEqual(new Set(['other', 'retries']));
  });
});

it('pass-on-event leaves an event to the others for a fraction of its age', async () => {
  const { keys, client } = store;
  await client.hset(keys.wanted, group, 'order');
  const pace = { firstBackOff: 1000, longestBackOff: 50 * MINUTE };
  const waits: number[] = [];
  for (const minutes of [800, 8, 0]) {
    const [seconds] = await client.time();
    const position = `${Number(seconds) * 1000 - minutes * MINUTE}-1`;
    await client.xadd(keys.events, position, 'type', 'deadline', 'name', 'order');
    await read(me, 1);
    const entry = { partition: keys, position, fields: [] };
    expect(await scripts.passOn(entry, me, 'order', pace)).toBe('passed');
    waits.push(Number(await client.zscore(keys.retries(group), position)) - Number(seconds) * 1000);
  }
  expect(waits.map((wait) => Math.floor(wait / MINUTE))).toEqual([50, 1, 0]);
  expect(waits[2]).toBeGreaterThanOrEqual(pace.firstBackOff / 10);
});

describe('register-handlers', () => {
  const register = (member: typeof me, ...names: string[]) =>
    scripts.registerHandlers(store.keys, member, handlers(...names), LEASE);

  it('returns the differing handlers of another active instance', async () => {
    expect(await register(other, 'A.a')).toEqual(['registered']);
    expect(await register(me, 'A.a', 'B.b')).toEqual(['differing', '["A.a"]']);
    expect(await register(other, 'A.a', 'B.b')).toEqual(['registered']);
    const record = await store.client.hget(store.keys.handlers, group);
    expect(Object.keys(JSON.parse(record!) as object).toSorted()).toEqual(['me', 'other']);
  });

  it('wants what any living instance wants, whoever joined last, and no longer what only one that left wanted', async () => {
    const join = (consumer: string, types: readonly string[]) =>
      scripts.registerHandlers(store.keys, { group, consumer }, { names: types, types }, LEASE);
    const wanted = async () => (await store.client.hget(store.keys.wanted, group))!.split(' ').toSorted();
    await join('new', ['a', 'b']);
    expect(await join('old', ['a'])).toEqual(['differing', '["a","b"]']);
    expect(await join('older', ['a'])).toEqual(['differing', '["a","b"]']);
    expect(await wanted()).toEqual(['a', 'b']);
    await scripts.releaseEvents(store.keys, { group, consumer: 'new' }, []);
    expect(await join('old', ['a'])).toEqual(['registered']);
    expect(await wanted()).toEqual(['a']);
  });

  it('wants no longer what only an instance wanted that was killed', async () => {
    const join = (consumer: string, types: readonly string[], liveness: number) =>
      scripts.registerHandlers(store.keys, { group, consumer }, { names: types, types }, liveness);
    await join('killed', ['a', 'b'], LEASE);
    // No instance is taken for a living one that was not seen in the last 0 ms.
    expect(await join('old', ['a'], 0)).toEqual(['registered']);
    expect(await store.client.hget(store.keys.wanted, group)).toBe('a');
  });

  it('begins anew where the record of handlers is none', async () => {
    await store.client.hset(store.keys.handlers, group, 'no JSON');
    expect(await register(me, 'A.a')).toEqual(['registered']);
    await store.client.hset(store.keys.handlers, group, '{"other":"no record"}');
    expect(await register(me, 'A.a')).toEqual(['registered']);
  });

  it('returns no handlers when there is only this instance, or only events that wait for a retry', async () => {
    const [position] = await endSessions(1);
    await register(me, 'A.a');
    await read(me, 1);
    await fail(me, position!);
    expect(await register(me, 'B.b')).toEqual(['registered']);
  });

  describe('records which events the group wants:', () => {
    const wish = (member: typeof me, names: string[], ...types: SessionEventType[]) =>
      scripts.registerHandlers(store.keys, member, { names, types }, LEASE);
    const recorded = () => store.client.hget(store.keys.wanted, group);

    it('as the instance that joined last says', async () => {
      await wish(me, ['A.a'], 'created', 'expired');
      expect(await recorded()).toBe('created expired');
      await wish(me, ['A.a']);
      expect(await recorded()).toBe('');
      await wish(me, ['A.a'], 'created');
      expect(await recorded()).toBe('created');
    });

    it('but also what other living instances want', async () => {
      await wish(me, ['A.a', 'B.b'], 'created', 'expired');
      await wish(other, ['A.a'], 'expired', 'deleted');
      expect(await recorded()).toBe('expired deleted created');
      await wish(other, ['C.c']);
      expect(await recorded()).toBe('created expired');
      await scripts.releaseEvents(store.keys, me, []);
      await wish(other, ['A.a']);
      expect(await recorded()).toBe('');
    });

    it('and what an instance that starts wants besides', async () => {
      await scripts.abstain(store.keys, me);
      expect(await recorded()).toBe('');
      await scripts.wantEvents(store.keys, me, ['expired', 'created']);
      await scripts.wantEvents(store.keys, me, ['deleted', 'expired']);
      await scripts.abstain(store.keys, me);
      expect(await recorded()).toBe('expired created deleted');
    });
  });
});

describe('a call that is sent twice because its reply was lost has one effect', () => {
  it.each<[string, (position: string) => Promise<unknown>]>([
    ['pick-up-events', () => scripts.pickUpEvents(store.keys, me, CLAIMS, 10)],
    ['an acknowledgement', (position) => scripts.acknowledge(store.keys, me, [position])],
    ['a failure', async (position) => fail(me, position)],
    ['the last failure', async (position) => fail(me, position, { attempts: 1 })],
    ['renew-lease', (position) => scripts.renewLease(store.keys, me, [position])],
    ['release-events', () => scripts.releaseEvents(store.keys, me, [])],
    ['register-handlers', () => scripts.registerHandlers(store.keys, me, handlers('A.a'), LEASE)],
  ])('%s', async (_, call) => {
    const [position] = await endSessions(1);
    await read(me, 1);
    await age(me, position!);
    await call(position!);
    const once = await dump(store.client);
    await call(position!);
    expect(await dump(store.client)).toEqual(once);
  });
});

describe('while a key has a wrong type', () => {
  const KEYS = ['events', 'failing', 'retries', 'deadLetters', 'lostDeadLetters', 'handlers', 'wanted'] as const;
  const keyOf = (name: (typeof KEYS)[number]) => {
    const key = store.keys[name];
    return typeof key === 'string' ? key : store.keys[name as 'failing' | 'retries'](group);
  };

  it.each<[string, (typeof KEYS)[number][], (position: string) => Promise<unknown>]>([
    ['pick-up-events', ['failing', 'retries'], () => scripts.pickUpEvents(store.keys, me, CLAIMS, 10)],
    ['an acknowledgement', ['failing', 'retries'], (position) => scripts.acknowledge(store.keys, me, [position])],
    ['a failure', ['failing', 'retries'], async (position) => fail(me, position)],
    ['the last failure', ['deadLetters', 'lostDeadLetters'], async (position) => fail(me, position, { attempts: 1 })],
    ['release-events', ['retries'], () => scripts.releaseEvents(store.keys, me, [])],
    [
      'register-handlers',
      ['handlers', 'wanted'],
      () => scripts.registerHandlers(store.keys, me, handlers('A.a'), LEASE),
    ],
  ])('%s writes nothing', async (_, keys, call) => {
    const [position] = await endSessions(1);
    await read(me, 1);
    for (const name of keys) {
      await store.client.set(keyOf(name), 'planted');
      const before = await dump(store.client);
      await expect(call(position!)).rejects.toThrow(`WRONGTYPE ${keyOf(name)} is a string`);
      expect(await dump(store.client)).toEqual(before);
      await store.client.del(keyOf(name));
    }
  });

  it('an event is retried while a stray key stands in the place of the dead letters', async () => {
    const [position] = await endSessions(1);
    await read(me, 1);
    await store.client.set(store.keys.deadLetters, 'planted');
    expect(await fail(me, position!, { done: ['Audit.write'] })).toBe('retry');
    await isDue(position!);
    expect(await scripts.pickUpEvents(store.keys, me, CLAIMS, 1)).toHaveLength(1);
  });
});
