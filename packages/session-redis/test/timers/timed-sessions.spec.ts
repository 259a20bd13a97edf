import { jest } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { OnSessionEvent, type Session, SessionExpiredEvent } from '@nest-session/core';
import { ForeignSessions } from '@nest-session/core/internal';
import { RedisSessionRepository } from '@nest-session/redis';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, SessionEventRecorder } from '@nest-session/testing';
import { resolveRedisSessionOptions } from '../../src/configuration/redis-session.options.js';
import { TimedSessions } from '../../src/expiration/timed-sessions.js';
import { SessionScripts } from '../../src/scripts/session/session.scripts.js';
import { EventInstance } from '../support/event-instance.fixture.js';
import { HandTimer } from '../support/hand.timer.js';
import { Store } from '../support/store.fixture.js';

LeakGuard.install();

// Only the timer notices that time is up.
const NEVER = '0 0 0 29 2 *';

describe.each([1, 4])('with a timer and %d partitions', (partitions) => {
  let store: Store;
  let timer: HandTimer;
  let instance: EventInstance;
  let repository: RedisSessionRepository;
  const expired = new SessionEventRecorder();
  @Injectable()
  class Handlers {
    @OnSessionEvent(SessionExpiredEvent)
    record(event: SessionExpiredEvent) {
      expired.record(event);
    }
  }

  beforeAll(async () => {
    store = await Store.open({ partitions });
  });
  afterAll(() => store.close());
  beforeEach(async () => {
    timer = new HandTimer();
    const redis = { url: store.server.url, partitions, notifications: 'off', cleanup: { cron: NEVER } } as const;
    instance = await EventInstance.start({ redis: { ...redis, expirations: timer }, providers: [Handlers] });
    repository = instance.module.get(RedisSessionRepository, { strict: false });
    EventInstance.log.lines.length = 0;
  });
  afterEach(() => instance.stop());

  async function saved(change: (session: Session) => void = () => undefined): Promise<Session> {
    const session = repository.createSession();
    session.setAttribute('cart', 'apple');
    change(session);
    await session.save();
    return session;
  }

  const loaded = async (id: string) => (await repository.findById(id))!;
  const calls = (count: number) => eventually(() => expect(timer.calls).toHaveLength(count));

  /** Expects a delay that ends within 2 s before the given one, and not earlier than the session. */
  function expectDelay(call: (typeof timer.calls)[number] | undefined, id: string, seconds: number): void {
    expect(call?.slice(0, 2)).toEqual(['schedule', id]);
    const delay = Number(call?.[2]);
    expect(delay).toBeGreaterThan((seconds - 30) * 1000);
    expect(delay).toBeLessThanOrEqual(seconds * 1000 + 1);
  }

  it('schedules a new session for its end, and nothing when the session is read or renewed', async () => {
    const { id } = await saved();
    await calls(1);
    expectDelay(timer.calls[0], id, 1800);
    const session = await loaded(id);
    session.setAttribute('cart', 'pear');
    await session.save();
    await repository.touch(session);
    await saved();
    await calls(2);
    expect(timer.calls.filter(([, of]) => of === id)).toHaveLength(1);
  });

  it('schedules a session anew when its id or its timeouts change, and cancels what was', async () => {
    const session = await saved();
    const old = session.id;
    await calls(1);
    const id = session.changeSessionId();
    await session.save();
    await calls(3);
    expect(timer.calls[1]).toEqual(['cancel', old]);
    expectDelay(timer.calls[2], id, 1800);
    session.maxInactiveInterval = 600;
    await session.save();
    await calls(5);
    expect(timer.calls[3]).toEqual(['cancel', id]);
    expectDelay(timer.calls[4], id, 600);
    session.absoluteTimeout = 300;
    await session.save();
    await calls(7);
    expectDelay(timer.calls[6], id, 300);
  });

  it('schedules a session that lasts for weeks for the next day, and none that never ends', async () => {
    const { id } = await saved((session) => (session.maxInactiveInterval = '30d'));
    await calls(1);
    expect(timer.calls[0]).toEqual(['schedule', id, 86_400_000]);
    const endless = await saved((session) => (session.maxInactiveInterval = 'never'));
    await saved();
    await calls(2);
    expect(timer.calls.some(([, of]) => of === endless.id)).toBe(false);
    expect(await timer.ask(endless.id)).toBeUndefined();
  });

  it('cancels a session that is deleted', async () => {
    const { id } = await saved();
    await calls(1);
    await repository.deleteById(id);
    await calls(2);
    expect(timer.calls[1]).toEqual(['cancel', id]);
  });

  it('reports the end of a session that it is asked about, once', async () => {
    const { id } = await saved();
    await store.runOut(id);
    expect(await Promise.all([timer.ask(id), timer.ask(id)])).toEqual([undefined, undefined]);
    expect(await timer.ask(id)).toBeUndefined();
    const event = await expired.next(SessionExpiredEvent, id);
    expect(event.session.getAttribute('cart')).toBe('apple');
    expect((await store.eventTypes(id)).filter((type) => type === 'expired')).toHaveLength(1);
  });

  it('ends nothing early: it answers when to ask again, and one of two who ask at once that nobody needs to', async () => {
    const { id } = await saved();
    const answers = await Promise.all([timer.ask(id), timer.ask(id)]);
    expect(answers[0]).toBeGreaterThan(1_790_000);
    expect(answers[0]).toBeLessThanOrEqual(1_800_001);
    expect(answers[1]).toBeUndefined();
    expect(await store.isAlive(id)).toBe(true);
    expect(await store.eventTypes(id)).not.toContain('expired');
  });

  it('claims many sessions with few calls', async () => {
    const ids = await Promise.all(Array.from({ length: 200 }, async () => (await saved()).id));
    await Promise.all(ids.map((id) => store.runOut(id)));
    const claim = jest.spyOn(SessionScripts.prototype, 'claimExpired');
    try {
      await Promise.all(ids.map((id) => timer.ask(id)));
      expect(claim.mock.calls.length).toBeLessThanOrEqual(4 + partitions);
    } finally {
      claim.mockRestore();
    }
    expect((await store.eventTypesOf(ids)).filter((types) => types.includes('expired'))).toHaveLength(ids.length);
  });

  it('answers a question that comes while the claim of another one is under way', async () => {
    const ids = [store.id()];
    while (ids.length < 3) ids.push(store.id(ids[0]));
    for (const id of ids) await store.create({ a: '1' }, { id });
    const { claimExpired } = SessionScripts.prototype;
    const gate = new Gate();
    const claims = jest.spyOn(SessionScripts.prototype, 'claimExpired');
    claims.mockImplementationOnce(async function (this: SessionScripts, ...call) {
      await gate.pass();
      return claimExpired.apply(this, call);
    });
    const first = timer.ask(ids[0]!);
    await gate.reached();
    const others = ids.slice(1).map((id) => timer.ask(id));
    gate.open();
    for (const answer of [first, ...others]) expect(await answer).toBeGreaterThan(0);
    expect(claims.mock.calls.map(([, members]) => members.length)).toEqual([1, 2]);
    claims.mockRestore();
  });

  it('ignores ids that no session has, and warns once of those that none can have', async () => {
    expect(await timer.ask('A'.repeat(43))).toBeUndefined();
    for (const garbage of ['', 'moved:x', '\r\nquit', 'a'.repeat(129)]) {
      expect(await timer.ask(garbage)).toBeUndefined();
    }
    expect(EventInstance.log.lines).toEqual([expect.stringMatching(/^warn The timer .* ids that no session can have/)]);
  });

  it('serves requests while the timer fails or does not answer, and logs that once', async () => {
    timer.answer = () => Promise.reject(new Error('no timer'));
    await saved();
    await saved();
    await calls(2);
    const failing = () => EventInstance.log.matching(/^error The timer of `expirations` fails.*no timer/);
    await eventually(() => expect(failing()).toHaveLength(1));
    timer.answer = () => {
      throw new Error('broken');
    };
    await saved();
    timer.answer = () => new Promise(() => undefined);
    await saved();
    timer.answer = async () => undefined;
    await saved();
    await calls(5);
    expect(EventInstance.log.lines).toHaveLength(1);
  });

  it('begins to work again when it has scheduled something, not when it has cancelled', async () => {
    const works = async () => undefined;
    const fails = () => Promise.reject<undefined>(new Error('no timer'));
    const after = async (answer: () => Promise<undefined>, act: () => Promise<unknown>) => {
      timer.answer = answer;
      const before = timer.calls.length;
      await act();
      await calls(before + 1);
      // What follows from the answer.
      await new Promise((resolve) => setImmediate(resolve));
      return EventInstance.log.lines.length;
    };
    expect(await after(fails, saved)).toBe(1);
    const { id } = await saved((session) => (session.maxInactiveInterval = -1));
    // On the connection on which the end of the new session was asked for, so that it was answered before the deletion.
    await instance.module.get(TimedSessions, { strict: false }).delayOf(id);
    expect(await after(works, () => repository.deleteById(id))).toBe(1);
    expect(await after(fails, saved)).toBe(1);
    expect(await after(works, saved)).toBe(1);
    expect(await after(fails, saved)).toBe(2);
  });

  it('has 10,000 calls of the timer without an answer at most, and goes on when they have one', async () => {
    const ends = instance.module.get(TimedSessions, { strict: false });
    const { id } = await saved();
    await calls(1);
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    timer.answer = () => released;
    for (let i = 0; i < 10_001; i++) ends.begin(id);
    const full = () =>
      EventInstance.log.matching(/^error The timer of `expirations` fails.*10000 calls still wait for a reply/);
    await calls(10_001);
    expect(full()).toHaveLength(1);
    release();
    await eventually(() => {
      ends.begin(id);
      expect(timer.calls.length).toBeGreaterThan(10_001);
    });
  });

  it('schedules a session that it takes over from express-session', async () => {
    const [key, id] = ['sess:taken-over', store.id()];
    await store.client.set(key, '{"cart":"apple"}', 'EX', 600);
    const foreign = instance.module.get(ForeignSessions, { strict: false });
    const read = (text: string) => ({
      attributes: new Map(Object.entries(JSON.parse(text) as object)),
      principalName: undefined,
    });
    await foreign.move(key, id, read);
    await calls(1);
    expectDelay(timer.calls[0], id, 600);
  });

  it('stops the timer with the application', async () => {
    expect(timer.hasStopped).toBe(false);
    await instance.module.close();
    expect(timer.hasStopped).toBe(true);
  });

  it('warns of a timer whose stop() throws', async () => {
    timer.stop = () => {
      throw new Error('still busy');
    };
    await instance.module.close();
    expect(EventInstance.log.lines).toEqual([expect.stringMatching(/^warn The timer .* be stopped.*still busy/)]);
  });

  it('does not wait for ever for the start of a timer, and says what becomes of it', async () => {
    const redis = { url: store.server.url, partitions, commandTimeout: '100ms' } as const;
    const slow = new HandTimer();
    let fail: (error: Error) => void = () => undefined;
    slow.opening = new Promise((_, reject) => (fail = reject));
    const other = await EventInstance.start({ redis: { ...redis, expirations: slow } });
    try {
      expect(EventInstance.log.matching(/^warn The timer .* has not started within 100 ms/)).toHaveLength(1);
      fail(new Error('no licence'));
      await eventually(() =>
        expect(EventInstance.log.matching(/^error The timer .* be started.*no licence/)).toHaveLength(1),
      );
    } finally {
      await other.stop();
    }
  });
});

it('a timer gets no answer while Redis is away, and an answer when it asks again afterwards', async () => {
  const store = await Store.open();
  const timer = new HandTimer();
  const redis = { url: store.server.url, notifications: 'off', cleanup: { cron: NEVER }, expirations: timer } as const;
  const instance = await EventInstance.start({ redis });
  try {
    const id = await store.create();
    store.server.freeze();
    await expect(timer.ask(id)).rejects.toThrow('Redis does not reply within 5000 ms');
    const again = timer.ask(id);
    store.server.thaw();
    expect(await again).toBeGreaterThan(1_700_000);
    expect(await timer.ask(id)).toBeGreaterThan(1_700_000);
  } finally {
    await instance.stop();
    await store.close();
  }
});

describe('the option `expirations`', () => {
  const resolved = (expirations: never) => resolveRedisSessionOptions({ expirations }).expirations;

  it('is a store or a timer', () => {
    const timer = new HandTimer();
    expect(resolveRedisSessionOptions().expirations).toEqual({ store: 'buckets', timer: undefined });
    expect(resolved('buckets' as never)).toEqual({ store: 'buckets', timer: undefined });
    expect(resolved(timer as never)).toEqual({ store: 'buckets', timer });
    const literal = { timer: 5, async start() {}, async schedule() {}, async cancel() {}, async stop() {} };
    expect(resolved(literal as never)).toEqual({ store: 'buckets', timer: literal });
    expect(resolved('sorted-set' as never)).toEqual({ store: 'sorted-set', timer: undefined });
  });

  const ACCEPTED = 'Option `expirations` must be "buckets", "sorted-set" or a SessionTimer, but is';
  const [ANOTHER_METHOD, A_CLASS] = [
    'an object without stop()',
    'a function or a class: pass an instance, as in `new MyTimer()`',
  ];
  const AWAITED = 'a Promise: await it first';
  class Closing {
    async start() {}
    async schedule() {}
    async cancel() {}
    async close() {}
  }

  it.each<[string, unknown, string]>([
    ['another name', 'heap', `${ACCEPTED} "heap".`],
    ['a number', 5, `${ACCEPTED} 5.`],
    ['null', null, `${ACCEPTED} null.`],
    ['a list', [], `${ACCEPTED} a list.`],
    ['a function', () => new HandTimer(), `${ACCEPTED} ${A_CLASS}.`],
    ['the class of a timer', HandTimer, `${ACCEPTED} ${A_CLASS}.`],
    ['the promise of a timer', Promise.resolve(new HandTimer()), `${ACCEPTED} ${AWAITED}.`],
    ['a timer with another method', new Closing(), `${ACCEPTED} ${ANOTHER_METHOD}.`],
    ['one method', { schedule() {} }, `${ACCEPTED} an object without start(), cancel(), stop().`],
    ['a map', new Map(), `${ACCEPTED} an object without start(), schedule(), cancel(), stop().`],
    [
      'a store with a timer',
      { store: 'buckets', timer: new HandTimer() },
      `${ACCEPTED} an object without start(), schedule(), cancel(), stop().`,
    ],
  ])('refuses %s, and says what is wrong', (_, given, problem) => {
    expect(() => resolved(given as never)).toThrow(expect.objectContaining({ problems: [problem] }) as Error);
  });
});
