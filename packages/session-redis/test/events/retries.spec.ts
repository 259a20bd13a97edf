import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionDeletedEvent, type SessionEvent } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
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

async function start(providers: NonNullable<EventInstanceOptions['providers']>, attempts = 10): Promise<EventInstance> {
  const instance = await EventInstance.start({ redis: { url: store.server.url, events: { attempts } }, providers });
  instances.push(instance);
  return instance;
}

async function endSession(cart: string): Promise<string> {
  const id = await store.create({ cart: JSON.stringify(cart) });
  await store.scripts.delete(id);
  return id;
}

const whatIsSeen = ({ id, at, session }: SessionEvent) => ({ id, at, cart: session.getAttribute('cart') });

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
  const seen = { id: `deleted:${id}`, at: expect.any(Number), cart: 'apple' };
  expect(attempts).toEqual([seen, attempts[0], attempts[0], attempts[0]]);
  expect(audited).toEqual([attempts[0]]);
  expect(await store.client.exists(store.keys.failing(GROUP), store.keys.retries(GROUP))).toBe(0);
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
