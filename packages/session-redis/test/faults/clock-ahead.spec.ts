import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionEvent, SessionRepository } from '@nest-session/core';
import { deadline } from '@nest-session/deadlines';
import { LeakGuard, SteppableRedisServer } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { LivingInstances } from '../../../redis-events/src/namespace/living-instances.js';
import { EventTrimmer } from '../../../redis-events/src/delivery/event.trimmer.js';
import { SessionScripts } from '../../src/scripts/session/session.scripts.js';
import { EventStreamScripts } from '../../../redis-events/src/scripts/event-stream.scripts.js';
import { SessionPartitions } from '../../src/keys/session-partitions.js';
import { DeadlineInstance } from '../../../deadlines/test/support/deadline.instance.js';
import { EventInstance } from '../support/event-instance.fixture.js';
import { KEEPING_RULES, type SteppableStore, Store } from '../support/store.fixture.js';
import { trimOnce } from '../support/trim-once.js';

LeakGuard.install();

const NEVER = '0 0 0 29 2 *';
const MINUTE = 60_000;
const AHEAD = 48 * 60 * MINUTE;

let server: SteppableRedisServer;
let client: Redis;
beforeEach(async () => {
  server = await SteppableRedisServer.start();
  client = new Redis(server.url);
});
afterEach(async () => {
  client.disconnect();
  await server.stop();
});

/** Does something while the clock of Redis is two days ahead. */
async function whileAhead(action: () => Promise<unknown>): Promise<void> {
  await server.stepClock(AHEAD);
  await action();
  await server.stepClock(-AHEAD);
}

const pendingOf = async (events: string) => ((await client.xpending(events, 'default')) as [number])[0];

describe('deadlines, after the clock of Redis was ahead for a moment,', () => {
  const kind = deadline<{ n: number }>('visit');
  const EVENTS = 'nest:deadlines:events';
  let instance: DeadlineInstance;
  afterEach(() => instance.stop());

  const begin = async (events: { maxLength?: number } = {}) => {
    instance = await DeadlineInstance.start({ redis: { url: server.url, events }, handles: [kind] });
  };
  let count = 0;
  /** Resolves when they are handled, and Redis knows it. */
  async function fire(number: number): Promise<void> {
    const keys = Array.from({ length: number }, () => `${count++}`);
    for (const key of keys) await instance.deadlines.schedule(kind, key, { in: '1ms', data: { n: 1 } });
    await eventually(async () => {
      expect(instance.keys).toEqual(expect.arrayContaining(keys));
      expect(await pendingOf(EVENTS)).toBe(0);
    });
  }

  it('leave no data of handled ones, twice', async () => {
    await begin();
    for (let step = 1; step <= 2; step++) {
      await fire(2);
      await whileAhead(() => fire(5));
      await fire(3);
      await instance.trim();
      await server.stepClock(MINUTE + 1000);
      await instance.trim();
      expect(await client.xlen(EVENTS)).toBe(0);
      expect(await client.exists(`${EVENTS}:thinned`)).toBe(0);
    }
  });

  it('count only those for events.maxLength that wait', async () => {
    await begin({ maxLength: 6 });
    await whileAhead(() => fire(5));
    await fire(20);
    expect(DeadlineInstance.log.matching(/Deadlines wait longer than they should/)).toEqual([]);
  });
});

@Injectable()
class Handlers {
  readonly handled: string[] = [];
  failures = 0;

  @OnSessionEvent(SessionEvent)
  handle({ type, sessionId }: SessionEvent) {
    if (this.failures-- > 0) throw new Error('not now');
    this.handled.push(`${type} ${sessionId}`);
  }
}

describe('sessions, after the clock of Redis was ahead for a moment,', () => {
  let instance: EventInstance;
  let handlers: Handlers;
  let keys: SessionPartitions['all'][number];
  afterEach(() => instance.stop());

  const begin = async (events: { attempts?: number; lease?: '1s'; deadLetters?: { retention: '1h' } } = {}) => {
    instance = await EventInstance.start({
      redis: { url: server.url, cleanup: { cron: NEVER }, events: { retention: '1h', ...events } },
      providers: [Handlers],
    });
    handlers = instance.module.get(Handlers);
    [keys] = instance.module.get(SessionPartitions, { strict: false }).all as [typeof keys];
  };
  const create = async () => {
    const session = instance.module.get(SessionRepository).createSession();
    session.setAttribute('cart', 1);
    await session.save();
    return session.id;
  };
  /** Resolves when all events are handled. */
  async function end(): Promise<string> {
    const id = await create();
    await instance.module.get(SessionRepository).deleteById(id);
    await eventually(async () => {
      expect(handlers.handled).toContain(`deleted ${id}`);
      expect(await pendingOf(keys.events)).toBe(0);
    });
    return id;
  }
  const trim = () => trimOnce(instance.module.get(EventTrimmer, { strict: false }));

  it('leave no handled event and no data of ended sessions, twice', async () => {
    await begin();
    for (let step = 1; step <= 2; step++) {
      const ids = [await end()];
      await whileAhead(async () => ids.push(await end(), await end()));
      ids.push(await end());
      await trim();
      await server.stepClock(5 * MINUTE + 1000);
      await trim();
      expect(await client.xlen(keys.events)).toBe(0);
      expect(await client.exists(...ids.map((id) => keys.session(id)))).toBe(0);
    }
  });

  it('lose no event that nobody has read, until its retention has passed', async () => {
    await begin();
    await end();
    await client.xgroup('CREATE', keys.events, 'away', '0');
    await client.hset(keys.wanted, 'away', 'created deleted');
    await whileAhead(() => end());
    await end();
    const recorded = await client.xlen(keys.events);
    await trim();
    await server.stepClock(58 * MINUTE);
    expect(await trim()).toEqual({ removed: 0, dropped: new Map() });
    await server.stepClock(3 * MINUTE);
    const { removed, dropped } = await trim();
    expect([removed, dropped.get('away')]).toEqual([recorded, recorded]);
  });

  it('are retried when they should be', async () => {
    await begin();
    await whileAhead(async () => {
      handlers.failures = 4;
      await create();
      await eventually(() => expect(handlers.failures).toBeLessThan(3));
    });
    await eventually(() => expect(handlers.handled).toHaveLength(1));
    await eventually(async () => expect(await pendingOf(keys.events)).toBe(0));
  });

  it('are taken over from a dead instance at the end of its lease', async () => {
    await begin();
    await end();
    const [me, dead] = ['me', 'dead'].map((consumer) => ({ group: 'away', consumer }));
    await client.xgroup('CREATE', keys.events, 'away', '0');
    const read = (count: number) =>
      client.xreadgroup('GROUP', 'away', dead!.consumer, 'COUNT', count, 'STREAMS', keys.events, '>');
    await read(1);
    await whileAhead(() => read(1));
    const scripts = instance.module.get(EventStreamScripts, { strict: false });
    const claimed = async () =>
      (await scripts.pickUpEvents(keys, me!, { lease: 30_000, longestBackOff: MINUTE }, 10)).length;
    expect(await claimed()).toBe(0);
    await server.stepClock(20_000);
    expect(await claimed()).toBe(0);
    await server.stepClock(11_000);
    expect(await claimed()).toBe(2);
  });

  it('keep dead letters for their retention, and no longer', async () => {
    await begin({ attempts: 1, deadLetters: { retention: '1h' } });
    const bury = async () => {
      const before = await client.xlen(keys.deadLetters);
      handlers.failures = 1;
      await create();
      await eventually(async () => expect(await client.xlen(keys.deadLetters)).toBe(before + 1));
    };
    await bury();
    await whileAhead(bury);
    await bury();
    await trim();
    await server.stepClock(58 * MINUTE);
    await bury();
    await trim();
    expect(await client.xlen(keys.deadLetters)).toBe(4);
    await server.stepClock(3 * MINUTE);
    await trim();
    expect(await client.xlen(keys.deadLetters)).toBe(1);
    expect(await client.zcard(`${keys.deadLetters}:index`)).toBe(1);
  });

  it('count an instance as alive that has died meanwhile for as long as any other', async () => {
    await begin();
    const living = instance.module.get(LivingInstances, { strict: false });
    await whileAhead(() => client.zadd(`${keys.prefix}instances`, Date.now() + AHEAD, 'dead'));
    expect(await living.others()).toEqual(['dead']);
    await server.stepClock(33_000);
    expect(await living.others()).toEqual([]);
  });
});

describe('a request, after the clock of Redis was ahead for a moment,', () => {
  let store: SteppableStore;
  beforeEach(async () => {
    store = await Store.openSteppable();
  });
  afterEach(() => store.close());

  it('is not forwarded for as long as that', async () => {
    const [id, newId] = [await store.create({ a: '1' }, { interval: -1 }), store.id()];
    await store.server.stepClock(AHEAD);
    expect(await store.save(id, { newId })).toEqual({ outcome: 'saved' });
    await store.server.stepClock(-AHEAD);
    await store.server.stepClock(MINUTE + 1000);
    expect(await store.save(id, { attributes: [['late', '1']] })).toMatchObject({ outcome: 'gone' });
  });

  it('does not wait for a sign-in that has ended without storing its session', async () => {
    const ledgers = new SessionScripts(store.client, store.partitions, KEEPING_RULES);
    const place = { replaced: undefined, atMost: 1, whenReached: 'refuse', duration: 5000 } as const;
    await store.server.stepClock(AHEAD);
    const id = store.id();
    await ledgers.reserve('ann', { ...place, id }, { sessions: [] });
    await store.server.stepClock(-AHEAD);
    const reservation = await ledgers.reserve('ann', { ...place, id: store.id() }, { sessions: [] });
    // Whether its session is there decides: nobody is about to store it.
    expect(reservation).toMatchObject({ word: 'refused', others: [{ id }] });
  });
});
