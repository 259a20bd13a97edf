import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionDeletedEvent, type SessionEvent } from '@nest-session/core';
import { SessionEventGroups } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { commandStats } from '../support/command.stats.js';
import { EventInstance, type EventInstanceOptions } from '../support/event-instance.fixture.js';
import { Store } from '../support/store.fixture.js';

LeakGuard.install();

const GROUP = 'default';

let store: Store;
let instances: EventInstance[] = [];
beforeAll(async () => {
  store = await Store.open();
});
afterEach(async () => {
  for (const instance of instances) await instance.stop();
  instances = [];
  EventInstance.log.lines.length = 0;
  await store.client.flushall();
});
afterAll(() => store.close());

async function start(
  providers: NonNullable<EventInstanceOptions['providers']>,
  attempts = 10,
  concurrency = 32,
  pace: EventInstanceOptions['pace'] = {},
): Promise<EventInstance> {
  const events = { attempts, concurrency };
  const instance = await EventInstance.start({ redis: { url: store.server.url, events }, providers, pace });
  instances.push(instance);
  return instance;
}

async function endSession(cart: string): Promise<string> {
  const id = await store.create({ cart: JSON.stringify(cart) });
  await store.scripts.delete(id);
  return id;
}

const whatIsSeen = ({ id, at, session }: SessionEvent) => ({ id, at, cart: session.getAttribute('cart') });

it('a handler that throws something without a text is retried alone, and its event becomes a dead letter', async () => {
  const calls: string[] = [];
  @Injectable()
  class Reminders {
    @OnSessionEvent(SessionDeletedEvent)
    remind() {
      calls.push('remind');
      throw Object.create(null);
    }

    @OnSessionEvent(SessionDeletedEvent)
    count() {
      calls.push('count');
    }
  }
  await start([Reminders], 3);
  await endSession('apple');
  await eventually(async () => expect(await store.deadLetters()).toHaveLength(1));
  expect(calls.toSorted()).toEqual(['count', 'remind', 'remind', 'remind']);
  expect(await store.deadLetters()).toMatchObject([
    { reason: 'Reminders.remind: a value without a text', attempts: '3', handler: 'Reminders.remind' },
  ]);
});

it('a handler is told which attempt it is, and log lines and dead letters name the event as it does', async () => {
  const attempts: number[] = [];
  const makeReminders = () => {
    @Injectable()
    class Reminders {
      @OnSessionEvent(SessionDeletedEvent)
      remind({ attempt }: SessionDeletedEvent) {
        attempts.push(attempt);
        throw new Error('no mail');
      }
    }
    return Reminders;
  };
  // A counter in memory would begin anew on the other instance.
  await start([makeReminders()], 3);
  await start([makeReminders()], 3);
  const id = await endSession('apple');
  await eventually(async () => expect(await store.deadLetters()).toHaveLength(1));
  expect(attempts).toEqual([1, 2, 3]);
  const groups = instances[0]!.module.get(SessionEventGroups);
  const [letter] = await groups.deadLetters();
  expect(letter).toMatchObject({ attempts: 3, event: { id: `deleted-${id}`, attempt: 3 } });
  const event = `Event deleted-${id} `;
  await eventually(() => {
    for (const attempt of [1, 2]) {
      expect(
        EventInstance.log.lines.filter((line) => line.includes(`${event}failed in attempt ${attempt} of 3`)),
      ).toHaveLength(1);
    }
    expect(EventInstance.log.lines.filter((line) => line.includes(`${event}is a dead letter now`))).toHaveLength(1);
  });
});

it('of two handlers of an event, one that fails three times runs four times, and the other once', async () => {
  const attempts: unknown[] = [];
  const audited: unknown[] = [];
  @Injectable()
  class Reminders {
    @OnSessionEvent(SessionDeletedEvent)
    remind(event: SessionDeletedEvent) {
      attempts.push(whatIsSeen(event));
      if (attempts.length <= 3) throw new Error('no mail');
    }

    @OnSessionEvent(SessionDeletedEvent)
    audit(event: SessionDeletedEvent) {
      audited.push(whatIsSeen(event));
    }
  }
  await start([Reminders]);
  await start([Reminders]);
  const id = await endSession('apple');
  await eventually(() => attempts.length === 4);
  await eventually(async () => (await store.pending(GROUP)) === 0);
  const seen = { id: `deleted-${id}`, at: expect.any(Number), cart: 'apple' };
  expect(attempts).toEqual([seen, attempts[0], attempts[0], attempts[0]]);
  expect(audited).toEqual([attempts[0]]);
  expect(await store.client.exists(store.keys.failing(GROUP), store.keys.retries(GROUP))).toBe(0);
});

it('retries that are due follow one another, without a poll between them', async () => {
  const carts = Array.from({ length: 12 }, (_, i) => `cart ${i}`);
  @Injectable()
  class Failing {
    @OnSessionEvent(SessionDeletedEvent)
    fail() {
      throw new Error('no mail');
    }
  }
  const failing = await start([Failing], 10, 32, { firstBackOff: 1, pollInterval: 3_600_000 });
  for (const cart of carts) await endSession(cart);
  await eventually(async () => (await store.client.zcard(store.keys.retries(GROUP))) === carts.length);
  await failing.stop();
  const handled: unknown[] = [];
  @Injectable()
  class Slow {
    @OnSessionEvent(SessionDeletedEvent)
    async handle(event: SessionDeletedEvent) {
      await new Promise(setImmediate);
      handled.push(event.session.getAttribute('cart'));
    }
  }
  // One place for retries, and one poll in the time of this test.
  await start([Slow], 10, 4, { pollInterval: 3_600_000 });
  await eventually(() => expect(new Set(handled)).toEqual(new Set(carts)));
});

it('an event that failed on one instance is retried by any instance of the group', async () => {
  const log: string[] = [];
  const remindersOf = (instance: string, fails: boolean) => {
    @Injectable()
    class Reminders {
      @OnSessionEvent(SessionDeletedEvent)
      remind() {
        log.push(instance);
        if (fails) throw new Error('no mail');
      }
    }
    return Reminders;
  };
  // Until there is another one.
  await start([remindersOf('broken', true)], 1000);
  await endSession('pear');
  await eventually(() => log.length > 0);
  await start([remindersOf('sound', false)], 1000);
  await eventually(() => log.includes('sound'));
  await eventually(async () => (await store.pending(GROUP)) === 0);
  expect(log.filter((instance) => instance === 'sound')).toHaveLength(1);
  await eventually(() =>
    expect(EventInstance.log.matching(/failed in attempt 1 of 1000 and will be retried/)).toHaveLength(1),
  );
});

it('an event that crashes its instances repeatedly becomes a dead letter without another attempt', async () => {
  const handled: string[] = [];
  @Injectable()
  class Reminders {
    @OnSessionEvent(SessionDeletedEvent)
    remind({ sessionId }: SessionDeletedEvent) {
      handled.push(sessionId);
    }
  }
  const [deadly, sound] = [await endSession('deadly'), await endSession('sound')];
  const { client, keys } = store;
  await client.xgroup('CREATE', keys.events, GROUP, '0');
  await client.xreadgroup('GROUP', GROUP, 'dead', 'STREAMS', keys.events, '>');
  for (const [position, [, , , id]] of await client.xrange(keys.events, '-', '+')) {
    // As if five instances had received the one event, and one the other, a long time ago.
    const count = id === deadly ? 5 : 1;
    await client.xclaim(keys.events, GROUP, 'dead', 0, position, 'IDLE', 60_000, 'RETRYCOUNT', count, 'JUSTID');
  }
  await start([Reminders]);
  await eventually(async () => (await store.pending(GROUP)) === 0);
  expect(handled).toEqual([sound]);
  const letters = await store.deadLetters();
  expect(letters.filter(({ type }) => type === 'deleted')).toEqual([
    expect.objectContaining({ session: deadly, reason: '5 instances ended while they handled it' }),
  ]);
  await eventually(() => expect(EventInstance.log.matching(/is a dead letter now/)).toHaveLength(letters.length));
});

it('an event that fails more often than instances may end over it is still retried', async () => {
  let attempts = 0;
  @Injectable()
  class Reminders {
    @OnSessionEvent(SessionDeletedEvent)
    remind() {
      if (++attempts <= 7) throw new Error('no mail');
    }
  }
  await start([Reminders]);
  await endSession('fig');
  await eventually(async () => expect([attempts, await store.pending(GROUP)]).toEqual([8, 0]));
  expect(await store.deadLetters()).toEqual([]);
});

it('retries take a quarter of the places of an instance, and new events the others', async () => {
  const failed = new Set<string>();
  const retried: string[] = [];
  const handled: string[] = [];
  let finish!: () => void;
  const finished = new Promise<void>((resolve) => (finish = resolve));
  @Injectable()
  class Reminders {
    @OnSessionEvent(SessionDeletedEvent)
    async remind({ sessionId, session }: SessionDeletedEvent) {
      if (session.getAttribute('cart') === 'sound') return void handled.push(sessionId);
      if (!failed.has(sessionId)) {
        failed.add(sessionId);
        throw new Error('no mail');
      }
      retried.push(sessionId);
      await finished;
    }
  }
  await start([Reminders], 10, 8);
  for (let i = 0; i < 12; i++) await endSession('failing');
  await eventually(() => expect([failed.size, retried.length]).toEqual([12, 2]));
  const reads = async () => (await commandStats(store.client)).get('xreadgroup')?.calls ?? 0;
  const before = await reads();
  for (let i = 0; i < 20; i++) {
    const id = await endSession('sound');
    await eventually(() => expect(handled.at(-1)).toBe(id));
  }
  // Between two reads the instance looks for retries when its poll is due.
  await eventually(async () => expect(await reads()).toBeGreaterThan(before + 40));
  expect(retried).toHaveLength(2);
  finish();
  await eventually(async () => expect([retried.length, await store.pending(GROUP)]).toEqual([12, 0]));
});

it('the reason in a dead letter has at most 1,000 characters', async () => {
  @Injectable()
  class Reminders {
    @OnSessionEvent(SessionDeletedEvent)
    remind() {
      throw new Error('no mail '.repeat(1000));
    }
  }
  await start([Reminders], 1);
  await endSession('plum');
  await eventually(async () => expect(await store.deadLetters()).toHaveLength(1));
  const [letter] = await store.deadLetters();
  expect(letter!['reason']).toHaveLength(1000);
});
