import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionDeletedEvent } from '@nest-session/core';
import { eventually, LeakGuard } from '@nest-session/testing';
import { EventInstance } from '../support/event-instance.fixture.js';
import { Store } from '../support/store.fixture.js';

LeakGuard.install();

const GROUP = 'default';
const LEASE = 1000;

let store: Store;
let instances: EventInstance[] = [];
beforeAll(async () => {
  store = await Store.open();
});
afterEach(async () => {
  for (const instance of instances) await instance.stop();
  instances = [];
  await store.client.flushall();
});
afterAll(() => store.close());

async function start(Handlers: new () => unknown): Promise<EventInstance> {
  const redis = { url: store.server.url, events: { lease: `${LEASE}ms` } };
  const instance = await EventInstance.start({ redis, providers: [Handlers as never] });
  instances.push(instance);
  return instance;
}

async function endSession(): Promise<string> {
  const id = await store.create({ cart: '"apple"' });
  await store.scripts.delete(id);
  return id;
}

it('a handler that takes three times the lease runs once, although others look for what was abandoned', async () => {
  const runs: string[] = [];
  let finish!: () => void;
  const finished = new Promise<void>((resolve) => (finish = resolve));
  @Injectable()
  class Handlers {
    @OnSessionEvent(SessionDeletedEvent)
    async handle({ sessionId }: SessionDeletedEvent) {
      runs.push(sessionId);
      await finished;
    }
  }
  for (let i = 0; i < 3; i++) await start(Handlers);
  const id = await endSession();
  await eventually(() => runs.length > 0);
  const begun = await store.now();
  await eventually(async () => (await store.now()) - begun >= 3 * LEASE);
  finish();
  await eventually(async () => (await store.pending(GROUP)) === 0);
  expect(runs).toEqual([id]);
});
