import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionDestroyedEvent } from '@nest-session/core';
import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { App, type AppOptions } from '../support/app.fixture.js';
import { MINUTE, type SteppableStore, Store } from '../support/store.fixture.js';

// The chaos suites repeat it with many sessions and processes; a process that is killed is in killed-process.e2e-spec.

LeakGuard.install();

/** Never during a test. */
const NEVER = '0 0 0 29 2 *';
/** Longer than the idle timeout, shorter than the data is kept. */
const TOO_LONG = 31 * MINUTE;

let store: SteppableStore;
let proxy: TcpProxy;
let app: App;
beforeAll(async () => {
  store = await Store.openSteppable();
  proxy = await TcpProxy.start({ port: store.server.port });
});
beforeEach(() => store.client.flushall());
afterEach(() => app.stop());
afterAll(async () => {
  await proxy.stop();
  await store.close();
});

const start = (notifications: 'auto' | 'off', options: AppOptions = {}) =>
  App.start({ ...options, redis: { url: proxy.url, notifications, cleanup: { cron: NEVER } } });

async function openSession(): Promise<string> {
  const { id } = (await app.agent().post('/set/cart', { value: ['apple'] })).json() as { id: string };
  return id;
}

/** Expires the session and has Redis notice it. */
async function runOut(id: string): Promise<void> {
  await store.server.stepClock(TOO_LONG);
  expect(await store.isAlive(id)).toBe(false);
}

async function isReported(id: string): Promise<void> {
  const event = await app.events.next('expired', id);
  expect(event.session.getAttribute('cart')).toEqual(['apple']);
  expect(event.dataLost).toBe(false);
  expect(await store.eventTypes(id)).toEqual(['created', 'expired']);
}

it('a session that ends while no instance runs is reported by the next instance, with its data', async () => {
  app = await start('auto');
  const id = await openSession();
  await app.stop();
  await runOut(id);
  app = await start('auto');
  await isReported(id);
});

it('a session that ends while no subscriber is connected is reported on reconnection, with its data', async () => {
  app = await start('auto');
  const [heard, missed] = [await openSession(), await openSession()];
  // Its bucket is not due: only a key event announces its end, and only to a subscriber.
  await eventually(async () => expect(await store.client.call('PUBSUB', 'NUMPAT')).toBe(1));
  await store.expireSoon(heard);
  await isReported(heard);
  proxy.refuse();
  await store.client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  await runOut(missed);
  await proxy.accept();
  await isReported(missed);
});

it('a session that ends while notifications are off is reported by the next sweep, with its data', async () => {
  app = await start('off');
  const id = await openSession();
  await runOut(id);
  await app.sweeper.runOnce();
  await isReported(id);
});

it('the end of a session is retried with its data after its handler has failed', async () => {
  const seen: unknown[] = [];
  @Injectable()
  class Failing {
    @OnSessionEvent(SessionDestroyedEvent)
    remind({ session }: SessionDestroyedEvent) {
      seen.push(session.getAttribute('cart'));
      if (seen.length === 1) throw new Error('on purpose');
    }
  }
  app = await start('auto', { providers: [Failing], handlers: false });
  const id = await openSession();
  await runOut(id);
  await eventually(() => expect(seen).toEqual([['apple'], ['apple']]));
  // Nobody wants its creation.
  expect((await store.eventTypes(id)).filter((type) => type !== 'created')).toEqual(['expired']);
});
