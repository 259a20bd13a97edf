import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionCreatedEvent, SessionDeletedEvent } from '@nest-session/core';
import { SessionEventGroups } from '@nest-session/redis';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { SessionEventTrimmer } from '../../src/delivery/session-event.trimmer.js';
import { EventInstance } from '../support/event-instance.fixture.js';
import { Store } from '../support/store.fixture.js';

LeakGuard.install();

let store: Store;
let instance: EventInstance | undefined;
beforeAll(async () => {
  store = await Store.open();
});
afterAll(async () => {
  await instance?.stop();
  await store.close();
});

it('a flood of creations, faster than its handler, does not push out the end of a session', async () => {
  const gate = new Gate();
  const handled: string[] = [];
  @Injectable()
  class Handlers {
    @OnSessionEvent(SessionCreatedEvent)
    async greet({ id }: SessionCreatedEvent) {
      await gate.pass();
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
  const create = (count: number) => Promise.all(Array.from({ length: count }, () => store.create()));
  await create(60);
  await store.scripts.delete(victim);
  await create(300);
  expect(await instance.module.get(SessionEventTrimmer).runOnce()).toMatchObject({ removed: 262 });
  gate.open();
  await eventually(() => handled.length >= 101);
  // The first was being handled when it made room for an end.
  expect(handled.slice(0, 2)).toEqual([`created:${victim}`, `deleted:${victim} apple`]);
  expect(await instance.module.get(SessionEventGroups).list()).toMatchObject([{ dropped: 262 }]);
  expect(EventInstance.log.matching(/262 events were removed that group "default" had not handled/)).toHaveLength(1);
});
