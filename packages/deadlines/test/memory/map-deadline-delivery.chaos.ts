import { Logger } from '@nestjs/common';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { ManualClock } from '@nest-session/testing';
import type { DeadlineDispatcher } from '../../src/deadlines/deadline-handlers.js';
import { EventHandlingError } from '@nest-session/core/internal';
import { MapDeadlineDelivery, MapDeadlineStore } from '../../src/deadlines/map-deadline.module.js';

LeakGuard.install();

const SECOND = 1000;
// More than a call can have arguments.
const MANY = 150_000;

it('knows when the next retry is due, however many deadlines have failed', async () => {
  Logger.overrideLogger(false);
  const clock = new ManualClock();
  const failure = new EventHandlingError('a deadline', [{ name: 'Orders.unpaid', cause: 'The database is down' }], []);
  const failing = {
    dispatch: () => Promise.reject(failure),
    broadcast: () => Promise.resolve(),
    idle: () => Promise.resolve(),
    wantedTypes: () => ['order.payment-due'],
    hasHandlers: true,
  } as unknown as DeadlineDispatcher;
  const store = new MapDeadlineStore({}, clock);
  const delivery = new MapDeadlineDelivery(failing, store, clock);
  const deadline = {
    name: 'order.payment-due',
    dueAt: 0,
    at: 0,
    scheduledAt: 0,
    text: undefined,
    traceparent: undefined,
  };
  const retrying = async () => [(await delivery.list())[0]?.retrying, delivery.nextDue];
  delivery.start();
  expect(delivery.nextDue).toBe(Infinity);
  for (let i = 0; i < MANY; i++) delivery.deliver({ ...deadline, id: `${i}`, key: `${i}` });
  await delivery.idle();
  const first = clock.now() + SECOND;
  expect(await retrying()).toEqual([MANY, first]);
  clock.advance(SECOND / 2);
  delivery.deliver({ ...deadline, id: 'late', key: 'late' });
  await delivery.idle();
  expect(delivery.nextDue).toBe(first);
  clock.advance(SECOND / 2);
  delivery.runDue();
  expect(await retrying()).toEqual([1, first + SECOND / 2]);
  await delivery.idle();
  expect(await retrying()).toEqual([MANY + 1, first + SECOND / 2]);
  delivery.stop();
});
