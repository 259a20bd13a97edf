import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionCreatedEvent, SessionDeletedEvent, SessionIdChangedEvent } from '@nest-session/core';
import { SessionEventGroups } from '@nest-session/redis';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { EventTrimmer } from '../../../redis-events/src/delivery/event.trimmer.js';
import { EventInstance } from '../support/event-instance.fixture.js';
import { Store } from '../support/store.fixture.js';
import { trimOnce } from '../support/trim-once.js';

LeakGuard.install();

let store: Store;
let instance: EventInstance;
beforeAll(async () => {
  store = await Store.open();
});
afterEach(async () => {
  await instance.stop();
  EventInstance.log.lines.splice(0);
  await store.client.flushall();
});
afterAll(() => store.close());

const create = () => store.create();

/** Changes the id of one session again and again; the first event is that of its creation. */
function rotations(): () => Promise<unknown> {
  let own: string | undefined;
  return async () => {
    const id = own;
    own = store.id();
    if (id === undefined) await store.create({}, { id: own });
    else expect(await store.save(id, { newId: own })).toMatchObject({ outcome: 'saved' });
  };
}

it.each([
  ['creations', create],
  ['changes of id', rotations()],
])('a flood of %s, faster than its handler, does not push out the end of a session', async (_, cause) => {
  const gate = new Gate();
  const handled: string[] = [];
  @Injectable()
  class Handlers {
    @OnSessionEvent(SessionCreatedEvent)
    async greet({ id }: SessionCreatedEvent) {
      await gate.pass();
      handled.push(id);
    }

    @OnSessionEvent(SessionIdChangedEvent)
    move({ id }: SessionIdChangedEvent) {
      handled.push(id);
    }

    @OnSessionEvent(SessionDeletedEvent)
    end({ id, session }: SessionDeletedEvent) {
      handled.push(`${id} ${session.getAttribute<string>('cart')}`);
    }
  }
  const events = { maxLength: 100, concurrency: 1 };
  const redis = { url: store.server.url, events, cleanup: { cron: '0 0 0 29 2 *' } };
  instance = await EventInstance.start({ redis, providers: [Handlers] });
  const victim = await store.create({ cart: '"apple"' });
  await gate.reached();
  const flood = async (count: number) => {
    for (let i = 0; i < count; i++) await cause();
  };
  await flood(60);
  await store.scripts.delete(victim);
  await flood(300);
  expect(await trimOnce(instance.module.get(EventTrimmer))).toMatchObject({ removed: 262 });
  gate.open();
  await eventually(() => handled.length >= 101);
  // The first was being handled when it made room for an end.
  expect(handled.slice(0, 2)).toEqual([`created-${victim}`, `deleted-${victim} apple`]);
  expect(await instance.module.get(SessionEventGroups).list()).toMatchObject([{ dropped: 262 }]);
  expect(EventInstance.log.matching(/262 events were removed that group "default" had not handled/)).toHaveLength(1);
});
