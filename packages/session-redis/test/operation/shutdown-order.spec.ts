import type { EventEmitter } from 'node:events';
import { Injectable } from '@nestjs/common';
import { ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { OnSessionEvent, SessionDeletedEvent, SessionEvent } from '@nest-session/core';
import { KeyspaceNotificationListener } from '@nest-session/redis-events';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { REDIS_CONNECTIONS, type RedisConnections } from '../../../redis-events/src/connection/redis-connections.js';
import { EventInstance, type EventInstanceOptions } from '../support/event-instance.fixture.js';
import { Store } from '../support/store.fixture.js';
import { Timers } from '../support/timers.js';
import { withAllRights } from '../support/with-all-rights.js';

LeakGuard.install();

let store: Store;
beforeAll(async () => {
  store = await Store.open();
});
afterEach(() => store.client.flushall());
afterAll(() => store.close());

/** An instance with every kind of listener and handler, whose handler of ends waits for `finish`. */
async function start(imports: EventInstanceOptions['imports'] = []) {
  const begun: string[] = [];
  let finish!: () => void;
  const finished = new Promise<void>((resolve) => (finish = resolve));
  @Injectable()
  class Handlers {
    @OnSessionEvent(SessionDeletedEvent)
    async handle({ sessionId }: SessionDeletedEvent) {
      begun.push(sessionId);
      await finished;
    }

    @OnSessionEvent(SessionEvent, { broadcast: true })
    hear() {}
  }
  const redis = {
    url: withAllRights(store.server.url),
    events: { lease: '3s' as const, shutdownTimeout: '1h' as const },
  };
  const instance = await EventInstance.start({ redis, imports, providers: [Handlers] });
  const keys = instance.module.get(KeyspaceNotificationListener, { strict: false });
  const subscription = keys.listen({ keys: 'cart:*', events: 'expired', handler: () => undefined });
  await eventually(() => subscription.health.state === 'listening');
  return { instance, begun, finish };
}

async function endSession(): Promise<string> {
  const id = await store.create({ cart: '"apple"' });
  await store.scripts.delete(id);
  return id;
}

/** The connections of instances, by what each is for. */
async function connections(): Promise<string[]> {
  const list = String(await store.client.client('LIST'));
  return [...list.matchAll(/name=nest:session:(\w+)/g)].map(([, name]) => name!).sort();
}

/** The message events of a connection that have a listener. */
function heardOn(connection: EventEmitter): (string | symbol)[] {
  return ['message', 'pmessage'].filter((name) => connection.listenerCount(name) > 0);
}

it('shutdown closes the sources of work first, and the connections of work in flight last', async () => {
  const { instance, begun, finish } = await start([ScheduleModule.forRoot()]);
  expect(await connections()).toEqual(['background', 'broadcast', 'notifications', 'reader', 'request', 'subscriber']);
  await endSession();
  await eventually(() => begun.length === 1);
  const registry = instance.module.get(SchedulerRegistry, { strict: false });
  expect(registry.doesExist('cron', 'session-cleanup')).toBe(true);
  let isStopped = false;
  const stopped = instance.stop().then(() => (isStopped = true));
  await eventually(async () => expect(await connections()).toEqual(['background', 'request']));
  expect(registry.doesExist('cron', 'session-cleanup')).toBe(false);
  // The instance keeps the lease of its event until the handler has finished.
  expect(await store.pending('default')).toBe(1);
  expect(isStopped).toBe(false);
  finish();
  await stopped;
  expect(await store.pending('default')).toBe(0);
  expect(await store.consumers('default')).toEqual([]);
  await eventually(async () => expect(await connections()).toEqual([]));
});

it('shutdown leaves no timer and no listener, and logs nothing', async () => {
  const timers = new Timers();
  timers.start();
  const listeners = () => process.eventNames().map((name) => [name, process.listenerCount(name)]);
  const before = listeners();
  const { instance, begun, finish } = await start();
  finish();
  await endSession();
  await eventually(() => begun.length === 1);
  const { subscriber, notifications } = instance.module.get<RedisConnections>(REDIS_CONNECTIONS, { strict: false });
  const subscribers = [...subscriber.all, ...notifications.all];
  expect(subscribers.flatMap(heardOn)).not.toEqual([]);
  EventInstance.log.lines.length = 0;
  await instance.stop();
  // ioredis keeps a timer until the socket is closed.
  await eventually(() => expect(timers.left()).toEqual([]), { timeout: 5000 });
  timers.stop();
  expect(EventInstance.log.lines).toEqual([]);
  expect(subscribers.flatMap(heardOn)).toEqual([]);
  expect(listeners()).toEqual(before);
});
