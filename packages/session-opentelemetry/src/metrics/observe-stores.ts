import type {
  DeadlineReading,
  GroupReading,
  SessionReader,
  SessionReading,
  StoreReader,
  WaitingReading,
} from '@nest-session/core/internal';
import type { Attributes, BatchObservableResult, Meter, Observable } from '@opentelemetry/api';
import { ATTRIBUTES } from '../instrumentation/attributes.js';
import { harmless } from '../instrumentation/harmless.js';
import { GAUGES, OBSERVED_COUNTERS, STATES } from './instrument-table.js';

/** What reads the stores that an application has. */
export interface StoreReaders {
  readonly sessions: SessionReader | undefined;
  readonly deadlines: StoreReader<DeadlineReading> | undefined;
}

/** An instrument that is observed, by its key in the table. */
type ObservedKey = keyof typeof GAUGES | keyof typeof OBSERVED_COUNTERS | keyof typeof STATES;
type Observe = (key: ObservedKey, value: number, attributes?: Attributes) => void;

/** What is observed of one store. */
interface Observation<Reading> {
  readonly reader: StoreReader<Reading & { readonly groups: readonly GroupReading[] }>;
  /** What the instance knows. */
  readonly tellInstance?: (observe: Observe) => void;
  /** What the store has, beside its groups. */
  readonly tellStore: (observe: Observe, reading: Reading) => void;
}

/**
 * Reads each store once for each collection of the SDK. When that fails, only what the instance knows is observed: the
 * SDK repeats the rest.
 */
export function observeStores(meter: Meter, { sessions, deadlines }: StoreReaders): () => void {
  const observables = make(meter);
  const all = Object.values(observables);
  const observers = [
    ...(sessions ? [observerOf(ofSessions(sessions))] : []),
    ...(deadlines ? [observerOf(ofDeadlines(deadlines))] : []),
  ];
  const observeAll = async (result: BatchObservableResult): Promise<void> => {
    await Promise.all(observers.map((observe) => observe(result, observables)));
  };
  meter.addBatchObservableCallback(observeAll, all);
  return () => meter.removeBatchObservableCallback(observeAll, all);
}

function make(meter: Meter): Readonly<Record<ObservedKey, Observable>> {
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

function observerOf<Reading>({ reader, tellInstance, tellStore }: Observation<Reading>) {
  const recent = new RecentNames<GroupReading>(({ name, dropped }) => ({ ...NOTHING_LEFT, name, dropped }));
  return async (result: BatchObservableResult, into: Readonly<Record<ObservedKey, Observable>>): Promise<void> => {
    const observe: Observe = (key, value, attributes = {}) =>
      result.observe(into[key], value, { [ATTRIBUTES.namespace]: reader.namespace, ...attributes });
    harmless(() => {
      observe('cleanupAge', seconds(reader.cleanupAge));
      tellInstance?.(observe);
    });
    const reading = await reader.read().catch(() => undefined);
    if (!reading) return;
    harmless(() => {
      tellStore(observe, reading);
      for (const group of recent.with(reading.groups)) tellGroup(observe, group);
    });
  };
}

const NOTHING_LEFT = { lag: 0, oldestUnreadAge: 0, pending: 0, retrying: 0, deadLetters: 0, lostDeadLetters: 0 };

function tellGroup(observe: Observe, group: GroupReading): void {
  const ofGroup = { [ATTRIBUTES.group]: group.name };
  observe('lag', group.lag, ofGroup);
  observe('pending', group.pending, ofGroup);
  observe('retrying', group.retrying, ofGroup);
  observe('oldestUnreadAge', seconds(group.oldestUnreadAge), ofGroup);
  observe('deadLetters', group.deadLetters, ofGroup);
  observe('dropped', group.dropped, ofGroup);
}

/** The states that `nest_session.notifications.status` has a series for, before the store is in them. */
const NOTIFICATION_STATES = ['stopped', 'connecting', 'listening', 'unproven', 'silent', 'refused', 'off'];

function ofSessions(reader: SessionReader): Observation<SessionReading> {
  return {
    reader,
    tellInstance: (observe) => {
      const { notifications } = reader;
      for (const state of new Set([...NOTIFICATION_STATES, notifications]))
        observe('notifications', state === notifications ? 1 : 0, { [ATTRIBUTES.notifications]: state });
    },
    tellStore: (observe, { sessions, overdue }) => {
      observe('sessionCount', sessions);
      observe('overdue', seconds(overdue));
    },
  };
}

function ofDeadlines(reader: StoreReader<DeadlineReading>): Observation<DeadlineReading> {
  const recent = new RecentNames<WaitingReading>(({ name }) => ({ name, count: 0, overdue: 0 }));
  return {
    reader,
    tellStore: (observe, { waiting }) => {
      for (const { name, count, overdue } of recent.with(waiting)) {
        const ofName = { [ATTRIBUTES.deadlineName]: name };
        observe('deadlineCount', count, ofName);
        observe('deadlineOverdue', seconds(overdue), ofName);
      }
    },
  };
}

function seconds(milliseconds: number): number {
  return milliseconds / 1000;
}

/**
 * Remembers what has been observed by its name. The SDK repeats the last value of what is no longer observed, so what
 * is gone is observed as empty.
 */
class RecentNames<Reading extends { readonly name: string }> {
  readonly #emptied = new Map<string, Reading>();

  constructor(private readonly emptied: (last: Reading) => Reading) {}

  /** The readings of now, and empty ones for the names of earlier ones. */
  with(readings: readonly Reading[]): Reading[] {
    const all = new Map([...this.#emptied, ...readings.map((reading) => [reading.name, reading] as const)]);
    for (const reading of readings) this.#emptied.set(reading.name, this.emptied(reading));
    return [...all.values()];
  }
}
