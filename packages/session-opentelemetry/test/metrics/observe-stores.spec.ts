import { Global, Module } from '@nestjs/common';
import {
  DEADLINE_READER,
  type DeadlineReading,
  SESSION_READER,
  type SessionReader,
  type SessionReading,
  type StoreReader,
} from '@nest-session/core/internal';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import type { Attributes } from '@opentelemetry/api';
import { GAUGES, OBSERVED_COUNTERS, STATES } from '../../src/metrics/instrument-table.js';
import { Sdk, textOf } from '../support/sdk.js';
import { closeShops, ShopApp } from '../support/shop.app.js';

LeakGuard.install();
afterEach(closeShops);

/** What a store with work in the background tells. */
class Reader implements SessionReader {
  readonly group = 'mailers';
  readonly namespace = '';
  readonly cleanupAge = 61_000;
  readonly notifications = 'silent';
  reads = 0;
  reading: SessionReading | undefined = {
    sessions: 7,
    overdue: 1500,
    groups: [
      { ...named('mailers'), lag: 1, oldestUnreadAge: 2500, pending: 2, retrying: 3, dropped: 4, deadLetters: 5 },
      named('others'),
    ],
  };

  async read(): Promise<SessionReading> {
    this.reads++;
    if (!this.reading) throw new Error('The store fails on purpose');
    return this.reading;
  }
}

/** What a store of deadlines tells. */
class OfDeadlines implements StoreReader<DeadlineReading> {
  readonly group = 'billing';
  readonly namespace = 'due';
  readonly cleanupAge = 2000;
  waiting: DeadlineReading['waiting'] = [{ name: 'order', count: 3, overdue: 500 }];

  async read(): Promise<DeadlineReading> {
    return { waiting: this.waiting, groups: [{ ...named('billing'), lag: 8 }] };
  }
}

function named(name: string): SessionReading['groups'][number] {
  const nothing = { lag: 0, oldestUnreadAge: 0, pending: 0, retrying: 0, dropped: 0, deadLetters: 0 };
  return { name, ...nothing, lostDeadLetters: 0 };
}

async function start(reader: Reader, deadlines = new OfDeadlines()): Promise<ShopApp> {
  @Global()
  @Module({
    providers: [
      { provide: SESSION_READER, useValue: reader },
      { provide: DEADLINE_READER, useValue: deadlines },
    ],
    exports: [SESSION_READER, DEADLINE_READER],
  })
  class ReaderModule {}
  return ShopApp.start({ imports: [ReaderModule] });
}

const ORDERS = { 'nest_session.namespace': 'due', 'nest_session.deadline.name': 'order' };
const NAMES: string[] = [GAUGES, OBSERVED_COUNTERS, STATES].flatMap((table) =>
  Object.values(table).map(({ name }) => name),
);

it('shows what the store tells, in seconds, by one read for each collection', async () => {
  const sdk = Sdk.register();
  const reader = new Reader();
  await start(reader);
  const metrics = await sdk.metrics();
  expect(reader.reads).toBe(1);
  const told = new Map(metrics.map(({ descriptor, dataPoints }) => [descriptor.name, dataPoints]));
  expect([...told.keys()].sort()).toEqual([...NAMES].sort());
  const of = (name: string, attributes: Attributes = {}) => {
    const wanted = { 'nest_session.namespace': '', ...attributes };
    return told
      .get(`nest_session.${name}`)
      ?.find((point) => JSON.stringify(point.attributes) === JSON.stringify(wanted))?.value;
  };
  expect([of('session.count'), of('expiration.overdue'), of('cleanup.age')]).toEqual([7, 1.5, 61]);
  const ofGroup = (group: string) =>
    [
      'event.lag',
      'event.oldest_unread.age',
      'event.pending',
      'event.retrying',
      'events.dropped',
      'dead_letter.count',
    ].map((name) => of(name, { 'messaging.consumer.group.name': group }));
  expect(ofGroup('mailers')).toEqual([1, 2.5, 2, 3, 4, 5]);
  expect(ofGroup('others')).toEqual([0, 0, 0, 0, 0, 0]);
  const states = ['silent', 'listening', 'off', 'refused', 'unproven', 'connecting', 'stopped'];
  const status = states.map((state) => of('notifications.status', { 'nest_session.notifications.state': state }));
  expect(status).toEqual([1, 0, 0, 0, 0, 0, 0]);
  await sdk.stop();
});

it('shows only what the instance knows while the store fails, and everything afterwards', async () => {
  const sdk = Sdk.register();
  const reader = new Reader();
  await start(reader);
  const { reading } = reader;
  reader.reading = undefined;
  const all = await sdk.metrics();
  const ofSessions = all.filter(({ dataPoints }) =>
    dataPoints.some(({ attributes }) => attributes['nest_session.namespace'] === ''),
  );
  expect(ofSessions.map(({ descriptor }) => descriptor.name).sort()).toEqual([
    'nest_session.cleanup.age',
    'nest_session.notifications.status',
  ]);
  expect(await sdk.value('nest_session.deadline.count', ORDERS)).toBe(3);
  reader.reading = reading;
  expect((await sdk.metrics()).length).toBe(NAMES.length);
  await sdk.stop();
});

it('shows a group that was removed as one with nothing left to do', async () => {
  const sdk = Sdk.register();
  const reader = new Reader();
  await start(reader);
  const mailers = { 'nest_session.namespace': '', 'messaging.consumer.group.name': 'mailers' };
  const letters = () => sdk.value('nest_session.dead_letter.count', mailers);
  const dropped = () => sdk.value('nest_session.events.dropped', mailers);
  expect([await letters(), await dropped()]).toEqual([5, 4]);
  reader.reading = { ...reader.reading!, groups: [named('others')] };
  // A counter that fell would be one of an instance that has started again.
  expect([await letters(), await dropped()]).toEqual([0, 4]);
  expect(await sdk.value('nest_session.event.oldest_unread.age', mailers)).toBe(0);
  await sdk.stop();
});

it('shows the deadlines that wait by their names, and a name of which none waits any more as 0', async () => {
  const sdk = Sdk.register();
  const deadlines = new OfDeadlines();
  await start(new Reader(), deadlines);
  const shown = async () => [
    await sdk.value('nest_session.deadline.count', ORDERS),
    await sdk.value('nest_session.deadline.overdue', ORDERS),
  ];
  expect(await shown()).toEqual([3, 0.5]);
  deadlines.waiting = [];
  expect(await shown()).toEqual([0, 0]);
  const ofBilling = { 'nest_session.namespace': 'due', 'messaging.consumer.group.name': 'billing' };
  expect(await sdk.value('nest_session.event.lag', ofBilling)).toBe(8);
  expect(await sdk.value('nest_session.cleanup.age', { 'nest_session.namespace': 'due' })).toBe(2);
  await sdk.stop();
});

it('shows it to an SDK that is registered after the start, and to none after the shutdown', async () => {
  const reader = new Reader();
  const shop = await start(reader);
  const sdk = Sdk.register();
  await shop.visit();
  expect(await sdk.value('nest_session.session.count', { 'nest_session.namespace': '' })).toBe(7);
  await shop.nest.close();
  const { reads } = reader;
  await sdk.metrics();
  expect(reader.reads).toBe(reads);
  await sdk.stop();
});

it('gives the calls of handlers the group of the instance, but not those of broadcast handlers', async () => {
  const sdk = Sdk.register();
  const shop = await start(new Reader());
  await shop.visit();
  await eventually(async () => {
    const calls = await sdk.series('nest_session.event.process.duration');
    const groups = calls.map(
      ({ attributes }) =>
        `${textOf(attributes, 'nest_session.handler')}: ${textOf(attributes, 'messaging.consumer.group.name')}`,
    );
    expect(groups.sort()).toEqual(['Mails.hear: none', 'Mails.onCreated: mailers']);
  });
  await sdk.stop();
});
