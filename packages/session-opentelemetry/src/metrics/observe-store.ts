import type { StoreReader, StoreReading } from '@nest-session/core/internal';
import type { BatchObservableResult, Meter, Observable } from '@opentelemetry/api';
import { ATTRIBUTES } from '../instrumentation/attributes.js';
import { harmless } from '../instrumentation/harmless.js';
import { GAUGES, OBSERVED_COUNTERS, STATES } from './instrument-table.js';

/** The instruments that are observed, by their keys in the table. */
type Observables = Readonly<Record<keyof typeof GAUGES | 'dropped' | 'notifications', Observable>>;

/** The states that `nest_session.notifications.status` has a series for, before the store is in them. */
const NOTIFICATION_STATES = ['stopped', 'connecting', 'listening', 'unproven', 'silent', 'refused', 'off'];

/** Reads the store once for each collection of the SDK. Nothing is observed when that fails. */
export function observeStore(meter: Meter, reader: StoreReader): () => void {
  const observables = make(meter);
  const all = Object.values(observables);
  const observe = async (result: BatchObservableResult): Promise<void> => {
    const reading = await reader.read().catch(() => undefined);
    if (reading) harmless(() => tell(result, observables, reader.namespace, reading));
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

function tell(result: BatchObservableResult, into: Observables, namespace: string, reading: StoreReading): void {
  const ofStore = { [ATTRIBUTES.namespace]: namespace };
  result.observe(into.sessionCount, reading.sessions, ofStore);
  result.observe(into.overdue, seconds(reading.overdue), ofStore);
  result.observe(into.cleanupAge, seconds(reading.cleanupAge), ofStore);
  for (const group of reading.groups) {
    const ofGroup = { ...ofStore, [ATTRIBUTES.group]: group.name };
    result.observe(into.lag, group.lag, ofGroup);
    result.observe(into.pending, group.pending, ofGroup);
    result.observe(into.retrying, group.retrying, ofGroup);
    result.observe(into.oldestUnreadAge, seconds(group.oldestUnreadAge), ofGroup);
    result.observe(into.deadLetters, group.deadLetters, ofGroup);
    result.observe(into.dropped, group.dropped, ofGroup);
  }
  for (const state of new Set([...NOTIFICATION_STATES, reading.notifications])) {
    const isCurrent = state === reading.notifications;
    result.observe(into.notifications, isCurrent ? 1 : 0, { ...ofStore, [ATTRIBUTES.notifications]: state });
  }
}

function seconds(milliseconds: number): number {
  return milliseconds / 1000;
}
