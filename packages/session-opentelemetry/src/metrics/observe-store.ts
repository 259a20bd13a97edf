import type { GroupReading, StoreReader, StoreReading } from '@nest-session/core/internal';
import type { BatchObservableResult, Meter, Observable } from '@opentelemetry/api';
import { ATTRIBUTES } from '../instrumentation/attributes.js';
import { harmless } from '../instrumentation/harmless.js';
import { GAUGES, OBSERVED_COUNTERS, STATES } from './instrument-table.js';

/** The instruments that are observed, by their keys in the table. */
type Observables = Readonly<Record<keyof typeof GAUGES | 'dropped' | 'notifications', Observable>>;

/** The states that `nest_session.notifications.status` has a series for, before the store is in them. */
const NOTIFICATION_STATES = ['stopped', 'connecting', 'listening', 'unproven', 'silent', 'refused', 'off'];

/**
 * Reads the store once for each collection of the SDK. When that fails, only what the instance knows is observed: the SDK
 * repeats the rest. So a group that is gone is observed as one that has nothing left to do.
 */
export function observeStore(meter: Meter, reader: StoreReader): () => void {
  const observables = make(meter);
  const all = Object.values(observables);
  const emptied = new Map<string, GroupReading>();
  const observe = async (result: BatchObservableResult): Promise<void> => {
    harmless(() => tellInstance(result, observables, reader));
    const reading = await reader.read().catch(() => undefined);
    if (!reading) return;
    const groups = new Map([...emptied, ...reading.groups.map((group) => [group.name, group] as const)]);
    for (const { name, dropped } of reading.groups) emptied.set(name, { ...NOTHING_LEFT, name, dropped });
    harmless(() => tellStore(result, observables, reader.namespace, { ...reading, groups: [...groups.values()] }));
  };
  meter.addBatchObservableCallback(observe, all);
  return () => meter.removeBatchObservableCallback(observe, all);
}

function make(meter: Meter): Observables {
  const gauges = Object.entries(GAUGES).map(
    ([key, { name, ...options }]) => [key, meter.createObservableGauge(name, options)] as const,
  );
  const { name: dropped, ...ofDropped } = OBSERVED_COUNTERS.dropped;
  const { name: notifications, ...ofNotifications } = STATES.notifications;
  return {
    ...(Object.fromEntries(gauges) as Record<keyof typeof GAUGES, Observable>),
    dropped: meter.createObservableCounter(dropped, ofDropped),
    notifications: meter.createObservableUpDownCounter(notifications, ofNotifications),
  };
}

const NOTHING_LEFT = { lag: 0, oldestUnreadAge: 0, pending: 0, retrying: 0, deadLetters: 0, lostDeadLetters: 0 };

function tellInstance(result: BatchObservableResult, into: Observables, reader: StoreReader): void {
  const { namespace, cleanupAge, notifications } = reader;
  const ofStore = { [ATTRIBUTES.namespace]: namespace };
  result.observe(into.cleanupAge, seconds(cleanupAge), ofStore);
  for (const state of new Set([...NOTIFICATION_STATES, notifications])) {
    result.observe(into.notifications, state === notifications ? 1 : 0, {
      ...ofStore,
      [ATTRIBUTES.notifications]: state,
    });
  }
}

function tellStore(result: BatchObservableResult, into: Observables, namespace: string, reading: StoreReading): void {
  const ofStore = { [ATTRIBUTES.namespace]: namespace };
  result.observe(into.sessionCount, reading.sessions, ofStore);
  result.observe(into.overdue, seconds(reading.overdue), ofStore);
  for (const group of reading.groups) {
    const ofGroup = { ...ofStore, [ATTRIBUTES.group]: group.name };
    result.observe(into.lag, group.lag, ofGroup);
    result.observe(into.pending, group.pending, ofGroup);
    result.observe(into.retrying, group.retrying, ofGroup);
    result.observe(into.oldestUnreadAge, seconds(group.oldestUnreadAge), ofGroup);
    result.observe(into.deadLetters, group.deadLetters, ofGroup);
    result.observe(into.dropped, group.dropped, ofGroup);
  }
}

function seconds(milliseconds: number): number {
  return milliseconds / 1000;
}
