import { Injectable, type Type } from '@nestjs/common';
import {
  OnSessionEvent,
  SessionCreatedEvent,
  SessionDeletedEvent,
  type SessionEvent,
  SessionStoreError,
} from '@nest-session/core';
import { type SessionDeadLetter, SessionEventGroups } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { EventInstance, type EventInstanceOptions } from '../support/event-instance.fixture.js';
import { Store } from '../support/store.fixture.js';

LeakGuard.install();

const NEVER = '0 0 0 29 2 *';

let store: Store;
let groups: SessionEventGroups;
let operator: EventInstance;
let instances: EventInstance[] = [];
beforeAll(async () => {
  store = await Store.open();
});
beforeEach(async () => {
  // An application without handlers, which is in no group.
  operator = await start('operator');
  groups = operator.module.get(SessionEventGroups);
});
afterEach(async () => {
  for (const instance of instances) await instance.stop();
  instances = [];
  await store.client.flushall();
});
afterAll(() => store.close());

function start(group: string, ...providers: Type[]): Promise<EventInstance> {
  return opened(optionsOf(group, ...providers));
}

function optionsOf(group: string, ...providers: Type[]): EventInstanceOptions {
  return {
    redis: { url: store.server.url, events: { group, attempts: 2 }, cleanup: { cron: NEVER } },
    providers,
  };
}

async function opened(options: EventInstanceOptions): Promise<EventInstance> {
  const instance = await EventInstance.start(options);
  instances.push(instance);
  return instance;
}

async function stop(instance: EventInstance): Promise<void> {
  instances = instances.filter((each) => each !== instance);
  await instance.stop();
}

async function endSession(cart = 'apple'): Promise<string> {
  const id = await store.create({ cart: JSON.stringify(cart) });
  await store.scripts.delete(id);
  return id;
}

const whatIsSeen = ({ id, at, session, dataLost }: SessionEvent) => ({
  id,
  at,
  dataLost,
  cart: session.getAttribute('cart'),
});

/** Two handlers, of which the first fails while `isBroken`. */
function reminders() {
  const seen = { mailed: [] as object[], logged: [] as object[], isBroken: true };
  @Injectable()
  class Reminders {
    @OnSessionEvent(SessionDeletedEvent)
    mail(event: SessionDeletedEvent) {
      seen.mailed.push(whatIsSeen(event));
      if (seen.isBroken) throw new Error('no mail');
    }

    @OnSessionEvent(SessionDeletedEvent)
    log(event: SessionDeletedEvent) {
      seen.logged.push(whatIsSeen(event));
    }
  }
  return { seen, Reminders };
}

describe('list()', () => {
  it('shows the lag, the pending events and the consumers of each group', async () => {
    expect(await groups.list()).toEqual([]);
    let finish!: () => void;
    const finished = new Promise<void>((resolve) => (finish = resolve));
    let begun = 0;
    @Injectable()
    class Slow {
      @OnSessionEvent(SessionDeletedEvent)
      wait() {
        begun++;
        return finished;
      }

      @OnSessionEvent(SessionCreatedEvent)
      note() {}
    }
    await opened({ ...optionsOf('slow', Slow), pace: { longestBackOff: 300_000 } });
    const { Reminders } = reminders();
    const failing = await start('failing', Reminders);
    await eventually(async () => (await groups.list()).length === 2);
    await endSession();
    await eventually(async () => expect(await groups.deadLetters()).toHaveLength(1));
    await stop(failing);
    const before = await store.now();
    for (let i = 0; i < 3; i++) await endSession();
    await store.client.hset(store.keys.dropped, 'failing', 7);
    await store.client.hset(store.keys.lostDeadLetters, 'failing', 3);
    // Within the longest back-off: what is later was written by a clock that was ahead.
    await store.client.zadd(store.keys.retries('slow'), (await store.now()) + 200_000, '1-1');
    // By then it has received all of them, and handled the created ones.
    await eventually(async () => begun === 4 && (await store.pending('slow')) === 4);

    const [first, second] = await groups.list();
    expect(first).toEqual({
      name: 'failing',
      lag: 6,
      oldestUnread: expect.any(Number),
      pending: 0,
      retrying: 0,
      dropped: 7,
      lostDeadLetters: 3,
      consumers: [],
    });
    expect(first!.oldestUnread).toBeGreaterThanOrEqual(before);
    expect(second).toMatchObject({
      name: 'slow',
      lag: 0,
      oldestUnread: undefined,
      pending: 4,
      retrying: 1,
      dropped: 0,
    });
    expect(second!.consumers).toEqual([
      { name: expect.stringContaining(String(process.pid)), pending: 4, idle: expect.any(Number) },
    ]);
    finish();
    await eventually(async () => (await store.pending('slow')) === 0);
  });

  it('computes the lag itself where Redis miscounts it after a removal', async () => {
    expect(await groups.create('away')).toBe(true);
    for (let i = 0; i < 1100; i++)
      await store.client.xadd(store.keys.events, '*', 'type', 'created', 'session', `${i}`);
    await store.client.xtrim(store.keys.events, 'MAXLEN', 1050);
    expect(await groups.list()).toMatchObject([{ name: 'away', lag: 1050 }]);
  });

  it('shows an instance that has waited long for events as active', async () => {
    const { Reminders } = reminders();
    await start('mail', Reminders);
    const idle = async () => (await groups.list())[0]?.consumers[0]?.idle ?? Infinity;
    await eventually(async () => (await idle()) < 1000);
    const since = performance.now();
    await eventually(async () => performance.now() - since > 1500 && (await idle()) < 1000);
    expect(await groups.remove('mail')).toBe('live');
  });
});

describe('create()', () => {
  it('keeps events for a future group, from the oldest event or from now on', async () => {
    await endSession();
    expect(await groups.create('all')).toBe(true);
    expect(await groups.create('all', { from: 'now' })).toBe(false);
    expect(await groups.create('new', { from: 'now' })).toBe(true);
    await endSession();
    expect(await groups.list()).toMatchObject([
      { name: 'all', lag: 4 },
      { name: 'new', lag: 2 },
    ]);
    const { seen, Reminders } = reminders();
    seen.isBroken = false;
    await start('new', Reminders);
    await eventually(() => seen.logged.length === 1);
  });

  it('rejects an empty name', async () => {
    await expect(groups.create(' ')).rejects.toMatchObject({
      name: 'RangeError',
      message: 'The name of a group must not be empty',
    });
  });
});

describe('remove()', () => {
  it('deletes a group without consumers and all its keys', async () => {
    const { Reminders } = reminders();
    const instance = await start('mail', Reminders);
    await endSession();
    await eventually(async () => expect(await groups.deadLetters()).toHaveLength(1));
    expect(await groups.remove('mail')).toBe('live');
    expect(await groups.list()).toHaveLength(1);
    await stop(instance);
    await store.client.hset(store.keys.dropped, 'mail', 1);
    await store.client.hset(store.keys.lostDeadLetters, 'mail', 1);
    await store.client.hset(store.keys.failing('mail'), '1-1', '{}');
    await store.client.zadd(store.keys.retries('mail'), 1, '1-1');
    expect(await groups.remove('mail')).toBe('removed');
    expect(await groups.list()).toEqual([]);
    const { keys } = store;
    const remembered = [keys.dropped, keys.lostDeadLetters, keys.failing('mail'), keys.retries('mail'), keys.handlers];
    expect(await store.client.exists(...remembered)).toBe(0);
    expect(await groups.remove('mail')).toBe('unknown');
  });
});

describe('a dead letter', () => {
  /** Puts `count` events of sessions that are gone among the dead letters of the group `mail`. */
  async function die(count = 1) {
    const { seen, Reminders } = reminders();
    await start('mail', Reminders);
    const ids: string[] = [];
    for (let i = 0; i < count; i++) ids.push(await endSession(`cart ${i}`));
    await eventually(async () => (await store.client.xlen(store.keys.deadLetters)) === count);
    for (const id of ids) await store.client.del(store.keys.session(id));
    const letters = await groups.deadLetters({ limit: 1000 });
    return { seen, ids, letters };
  }

  const settled = () => eventually(async () => (await store.pending('mail')) === 0);

  it('holds the event, the group, the handler, the reason and the session data', async () => {
    const before = await store.now();
    const { ids, letters, seen } = await die();
    const [letter] = letters as [SessionDeadLetter];
    expect(letter).toMatchObject({
      reason: 'Reminders.mail: Error: no mail',
      group: 'mail',
      attempts: 2,
      succeeded: ['Reminders.log'],
      member: undefined,
    });
    expect(letter.at).toBeGreaterThanOrEqual(before);
    expect(letter.event).toBeInstanceOf(SessionDeletedEvent);
    expect(whatIsSeen(letter.event!)).toEqual(seen.mailed[0]);
    expect(letter.event!.sessionId).toBe(ids[0]);
  });

  it('is replayed for the failed group and handler only, with the same id and data', async () => {
    const audited: object[] = [];
    @Injectable()
    class Audit {
      @OnSessionEvent(SessionDeletedEvent)
      audit(event: SessionDeletedEvent) {
        audited.push(whatIsSeen(event));
      }

      @OnSessionEvent(SessionDeletedEvent, { broadcast: true })
      hear(event: SessionDeletedEvent) {
        audited.push(whatIsSeen(event));
      }
    }
    await start('audit', Audit);
    const { seen, letters } = await die();
    await eventually(() => audited.length === 2);
    seen.isBroken = false;
    expect(await groups.replay(letters[0]!.id)).toBe('replayed');
    await eventually(() => seen.mailed.length === 3);
    await settled();
    expect(seen.mailed).toEqual([seen.mailed[0], seen.mailed[0], seen.mailed[0]]);
    expect(seen.mailed[0]).toMatchObject({ cart: 'cart 0', dataLost: false });
    expect(seen.logged).toEqual([seen.mailed[0]]);
    expect(await groups.deadLetters()).toEqual([]);
    expect(await groups.replay(letters[0]!.id)).toBe('gone');
    // More than Redis counts.
    expect(await groups.replay(`${'9'.repeat(20)}-0-0`)).toBe('gone');
    expect(await groups.discard(`${'9'.repeat(20)}-0-0`)).toBe(false);
    await eventually(async () => (await store.pending('audit')) === 0);
    await eventually(async () => (await groups.list()).every(({ lag }) => lag === 0));
    expect(audited).toHaveLength(2);
  });

  it('is replayed or discarded with all others or all of its group', async () => {
    const { seen } = await die(110);
    await store.client.xadd(store.keys.deadLetters, '*', 'group', 'other', 'reason', 'x', 'type', 'created');
    await store.client.xadd(store.keys.deadLetters, '*', 'member', 'stray', 'reason', 'not a member', 'at', '1');
    expect(await groups.deadLetters()).toHaveLength(100);
    expect(await groups.deadLetters({ group: 'other' })).toHaveLength(1);
    const [, second, third] = await groups.deadLetters({ limit: 3 });
    expect(await groups.deadLetters({ after: second!.id, limit: 1 })).toMatchObject([{ id: third!.id }]);

    seen.isBroken = false;
    // Neither for an unknown group, nor for a dead letter without an event.
    expect(await groups.replayAll()).toBe(110);
    await eventually(() => seen.mailed.length === 330);
    await settled();
    const [orphan, stray] = (await groups.deadLetters()) as [SessionDeadLetter, SessionDeadLetter];
    expect(orphan).toMatchObject({ group: 'other', attempts: 0, event: { type: 'created' } });
    expect(stray).toMatchObject({ group: undefined, event: undefined, member: 'stray', reason: 'not a member' });
    expect(await groups.replay(orphan.id)).toBe('orphaned');
    expect(await groups.replay(stray.id)).toBe('foreign');
    expect(await groups.discardAll({ group: 'other' })).toBe(1);
    expect(await groups.discard(stray.id)).toBe(true);
    expect(await groups.discard(stray.id)).toBe(false);
    expect(await groups.discardAll()).toBe(0);
    expect(await groups.deadLetters()).toEqual([]);
  });

  it('with foreign content shows its readable fields', async () => {
    const fields = ['group', 'mail', 'type', 'deleted', 'session', 's', 'at', '1', 'data', '{', 'done', '[1,"A.b"'];
    await store.client.xadd(store.keys.deadLetters, '*', ...fields);
    expect(await groups.deadLetters()).toMatchObject([{ succeeded: [], event: { id: 'deleted-s', dataLost: true } }]);
  });
});

it('a call fails within the command timeout when Redis does not reply', async () => {
  const { module } = await opened({ redis: { url: store.server.url, commandTimeout: '100ms' } });
  store.server.freeze();
  try {
    await expect(module.get(SessionEventGroups).list()).rejects.toThrow(SessionStoreError);
  } finally {
    store.server.thaw();
  }
});
