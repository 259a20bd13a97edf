import type {
  DeadlineReading,
  GroupReading,
  SessionReader,
  StoreReader,
  WaitingReading,
} from '@nest-session/core/internal';
import type { BatchObservableResult, Meter, Observable } from '@opentelemetry/api';
import { attributesOf, harmless } from '../sdk-calls.js';
import { GAUGES, OBSERVED_COUNTERS, STATES } from './instrument-table.js';

export interface StoreReaders {
  readonly sessions: SessionReader | undefined;
  readonly deadlines: StoreReader<DeadlineReading> | undefined;
}

type ObservedKey = keyof typeof GAUGES | keyof typeof OBSERVED_COUNTERS | keyof typeof STATES;
type Observables = Readonly<Record<ObservedKey, Observable>>;
type Observe = (key: ObservedKey, value: number, attributes?: Parameters<typeof attributesOf>[0]) => void;
type Observer = (result: BatchObservableResult, into: Observables) => Promise<void>;

/**
 * Reads each store once for each collection of the SDK. When that fails, only what the instance knows is observed: the
 * SDK repeats the rest. Returns what stops it.
 */
export function observeStores(meter: Meter, { sessions, deadlines }: StoreReaders): () => void {
  const observables = make(meter);
  const all = Object.values(observables);
  const observers = [...(sessions ? [ofSessions(sessions)] : []), ...(deadlines ? [ofDeadlines(deadlines)] : [])];
  const observeAll = async (result: BatchObservableResult): Promise<void> => {
    await Promise.all(observers.map((observe) => observe(result, observables)));
  };
  meter.addBatchObservableCallback(observeAll, all);
  return () => meter.removeBatchObservableCallback(observeAll, all);
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

/** The states that `nest_session.notifications.status` has a series for, before the store is in them. */
const NOTIFICATION_STATES = ['stopped', 'connecting', 'listening', 'unproven', 'silent', 'refused', 'off'];

function ofSessions(reader: SessionReader): Observer {
  const tellInstance = (observe: Observe) => {
    for (const state of new Set([...NOTIFICATION_STATES, reader.notifications]))
      observe('notifications', state === reader.notifications ? 1 : 0, { notifications: state });
  };
  return observerOf(reader, tellInstance, (observe, { sessions, overdue }) => {
    observe('sessionCount', sessions);
    observe('overdue', seconds(overdue));
  });
}

function ofDeadlines(reader: StoreReader<DeadlineReading>): Observer {
  const recent = new RecentNames<WaitingReading>(({ name }) => ({ name, count: 0, overdue: 0 }));
  return observerOf(
    reader,
    () => undefined,
    (observe, { waiting }) => {
      for (const { name: deadlineName, count, overdue } of recent.with(waiting)) {
        observe('deadlineCount', count, { deadlineName });
        observe('deadlineOverdue', seconds(overdue), { deadlineName });
      }
    },
  );
}

function observerOf<Reading extends { readonly groups: readonly GroupReading[] }>(
  reader: StoreReader<Reading>,
  tellInstance: (observe: Observe) => void,
  tellStore: (observe: Observe, reading: Reading) => void,
): Observer {
  const recent = new RecentNames<GroupReading>(({ name, dropped }) => ({ ...NOTHING_LEFT, name, dropped }));
  return async (result, into) => {
    const observe: Observe = (key, value, attributes) =>
      result.observe(into[key], value, attributesOf({ namespace: reader.namespace, ...attributes }));
    harmless(() => {
      observe('cleanupAge', seconds(reader.cleanupAge));
      tellInstance(observe);
    });
    const reading = await reader.read().catch(() => undefined);
    if (!reading) return;
    harmless(() => {
      tellStore(observe, reading);
      for (const { name: group, oldestUnreadAge, ...counts } of recent.with(reading.groups)) {
        observe('oldestUnreadAge', seconds(oldestUnreadAge), { group });
        for (const key of COUNTS) observe(key, counts[key], { group });
      }
    });
  };
}

const COUNTS = ['lag', 'pending', 'retrying', 'deadLetters', 'dropped'] as const;
const NOTHING_LEFT = { lag: 0, oldestUnreadAge: 0, pending: 0, retrying: 0, deadLetters: 0, lostDeadLetters: 0 };

function seconds(milliseconds: number): number {
  return milliseconds / 1000;
}

/** The SDK repeats the last value of what is no longer observed, so what is gone is observed as empty. */
class RecentNames<Reading extends { readonly name: string }> {
  readonly #emptied = new Map<string, Reading>();

  constructor(private readonly emptied: (last: Reading) => Reading) {}

  with(readings: readonly Reading[]): Reading[] {
    const all = new Map([...this.#emptied, ...readings.map((reading) => [reading.name, reading] as const)]);
    for (const reading of readings) this.#emptied.set(reading.name, this.emptied(reading));
    return [...all.values()];
  }
}
