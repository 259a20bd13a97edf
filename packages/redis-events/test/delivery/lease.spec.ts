import { setImmediate } from 'node:timers/promises';
import { jest } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionDeletedEvent } from '@nest-session/core';
import { PollingLoop } from '@nest-session/core/store';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { ConsumerGroupMember } from '../../src/delivery/consumer-group-member.js';
import { leaseRenewal } from '../../src/delivery/event.consumer.js';
import { EventInstance } from '../../../session-redis/test/support/event-instance.fixture.js';
import { type SteppableStore, Store } from '../../../session-redis/test/support/store.fixture.js';

LeakGuard.install();

const GROUP = 'default';
const LEASE = 1000;

type PendingEvent = [position: string, consumer: string, idle: number, deliveries: number];

let store: SteppableStore;
let instances: EventInstance[] = [];
beforeEach(async () => {
  // One for each test: a stopped clock does not continue.
  store = await Store.openSteppable();
});
afterEach(async () => {
  for (const instance of instances) await instance.stop();
  instances = [];
  jest.restoreAllMocks();
  await store.close();
});

async function start(Handlers: new () => unknown): Promise<EventInstance> {
  const redis = { url: store.server.url, events: { lease: `${LEASE}ms` } };
  const instance = await EventInstance.start({ redis, providers: [Handlers as never] });
  instances.push(instance);
  return instance;
}

/** Handlers that run until `finish`, and the sessions whose ends they have started to handle. */
function slowHandlers() {
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
  return { Handlers, runs, finish };
}

async function endSession(): Promise<string> {
  const id = await store.create({ cart: '"apple"' });
  await store.scripts.delete(id);
  return id;
}

/** Ends a session whose event was delivered to an instance that is gone; its id. */
async function abandon(): Promise<string> {
  const id = await endSession();
  await store.client.xgroup('CREATE', store.keys.events, GROUP, '0');
  await store.client.xreadgroup('GROUP', GROUP, 'gone', 'STREAMS', store.keys.events, '>');
  return id;
}

/** Milliseconds since the last renewal of each event that is being handled. */
async function idleTimes(): Promise<number[]> {
  const pending = (await store.client.xpending(store.keys.events, GROUP, '-', '+', 100)) as PendingEvent[];
  return pending.filter(([, consumer]) => consumer !== 'gone').map(([, , idle]) => idle);
}

it('a handler that takes three times the lease runs once, although others look for abandoned events', async () => {
  const { Handlers, runs, finish } = slowHandlers();
  const abandoned = await abandon();
  // From now on time passes only as far as the instances, however slow, have renewed their leases.
  await store.server.stopClock();
  for (let i = 0; i < 3; i++) await start(Handlers);
  const id = await endSession();
  await eventually(() => runs.length > 0);
  const begun = await store.now();
  while ((await store.now()) - begun < 3 * LEASE || runs.length < 2) {
    await eventually(async () => Math.max(...(await idleTimes())) < LEASE / 2);
    await store.server.stepClock(LEASE / 10);
  }
  finish();
  await eventually(async () => (await store.pending(GROUP)) === 0);
  // The abandoned event was claimed and handled once as well.
  expect(runs).toEqual([id, abandoned]);
});

it('an event that its own instance claims again and finishes before the reply is not handled twice', async () => {
  const { Handlers, runs, finish } = slowHandlers();
  const takenOver = holdTakenOver();
  const acknowledged = jest.spyOn(ConsumerGroupMember.prototype, 'acknowledge');
  await start(Handlers);
  const id = await endSession();
  await eventually(() => runs.length > 0);
  // As if the process had stalled: the lease has run out, unless it is renewed right now.
  await eventually(async () => {
    await store.server.stepClock(10 * LEASE);
    return takenOver.hasHappened();
  });
  finish();
  await eventually(async () => (await store.pending(GROUP)) === 0);
  await Promise.all(acknowledged.mock.results.map(({ value }) => value));
  await setImmediate();
  takenOver.tell();
  const next = await endSession();
  await eventually(() => runs.includes(next));
  expect(runs).toEqual([id, next]);
});

it('a lease is renewed every third of its length, and not after the instance has stopped', async () => {
  const { Handlers, runs, finish } = slowHandlers();
  const renewed = jest.spyOn(ConsumerGroupMember.prototype, 'renew');
  const instance = await start(Handlers);
  await endSession();
  await eventually(() => runs.length > 0);
  const yardstick = ticks(LEASE / 3);
  renewed.mockClear();
  await yardstick.reach(12);
  // A renewal waits for its reply, so each comes a little late, but never early.
  expect(renewed.mock.calls.length).toBeGreaterThanOrEqual(4);
  expect(renewed.mock.calls.length).toBeLessThanOrEqual(13);
  finish();
  await instance.stop();
  renewed.mockClear();
  await yardstick.reach(14);
  await yardstick.stop();
  expect(renewed).not.toHaveBeenCalled();
});

it('a long lease is renewed so often that an instance with the default lease does not take the event over', async () => {
  jest.useFakeTimers();
  try {
    const renew = jest.fn(() => Promise.resolve());
    const renewals = leaseRenewal(600_000, renew, new AbortController().signal);
    renewals.start();
    await jest.advanceTimersByTimeAsync(20_000);
    expect(renew).toHaveBeenCalledTimes(2);
    await renewals.stop();
  } finally {
    jest.useRealTimers();
  }
});

/** Counts ticks of this process, which are late whenever the process is. */
function ticks(interval: number) {
  let count = 0;
  const loop = new PollingLoop('The yardstick', interval, async () => void count++);
  loop.start();
  return { reach: (goal: number) => eventually(() => count >= goal), stop: () => loop.stop() };
}

/** Holds the first reply with a claimed event until `tell`. */
function holdTakenOver() {
  const { pickUpEvents } = ConsumerGroupMember.prototype;
  let happened = false;
  let tell!: () => void;
  const told = new Promise<void>((resolve) => (tell = resolve));
  jest.spyOn(ConsumerGroupMember.prototype, 'pickUpEvents').mockImplementation(async function (
    this: ConsumerGroupMember,
    ...of
  ) {
    const taken = await pickUpEvents.apply(this, of);
    if (taken.length > 0) {
      happened = true;
      await told;
    }
    return taken;
  });
  return { hasHappened: () => happened, tell };
}
