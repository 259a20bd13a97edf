import type { EventGroupInfo } from '../events/event-groups.js';
import type { SessionHandlerContext } from './channels.js';

/** What `@nest-session/opentelemetry` provides, for what no tracing channel can tell or do. */
export interface SessionTelemetry {
  /** Calls a handler in the context of its span. Settles as the call does. */
  runHandler(run: () => unknown, context: SessionHandlerContext): unknown;
  /** The W3C traceparent of the span that is active now, for the events that it causes; undefined: none. */
  traceparent(): string | undefined;
  /** A request needed its session while the store failed. Told once for each request, by what that meant for it. */
  outage(policy: 'reject' | 'anonymous' | 'on-use'): void;
  /** An event of this type, `deadline` for one of `Deadlines`, is a dead letter now, after this handler has failed. */
  deadLettered(type: string, handler: string): void;
  /** How the binding of a session went: by what the browser was answered, or what a request of a user proves. */
  device(what: 'registrations' | 'refreshes' | 'requests', outcome: string): void;
}

/** The injection token of a `SessionTelemetry`. */
export const SESSION_TELEMETRY = Symbol('SESSION_TELEMETRY');

/** How far a group of instances is with its events, and what it has lost, in all partitions together. */
export interface GroupReading extends Omit<EventGroupInfo, 'oldestUnread' | 'consumers'> {
  /** Number of events that it has not read. In each partition, at most 100 are counted. */
  readonly lag: number;
  /** The age of the oldest of them in milliseconds, by Redis' clock; 0 when it has read all. */
  readonly oldestUnreadAge: number;
  /** Number of its dead letters. */
  readonly deadLetters: number;
}

/** What a store knows of itself at a moment. Every instance reads the same. */
interface StoreReading {
  /** Ordered by name. */
  readonly groups: readonly GroupReading[];
}

export interface SessionReading extends StoreReading {
  /** Number of sessions that can end by themselves and have not. */
  readonly sessions: number;
  /** How long ago the oldest end was due that nobody has noticed, in milliseconds; 0 when there is none. */
  readonly overdue: number;
}

export interface DeadlineReading extends StoreReading {
  /** Ordered by name. */
  readonly waiting: readonly WaitingReading[];
}

/** How many deadlines of a name wait. */
export interface WaitingReading {
  readonly name: string;
  readonly count: number;
  /** How long ago the first of them was due, in milliseconds; 0 when it is not due yet. */
  readonly overdue: number;
}

/** Reads what a store, and the instance, know of themselves. */
export interface StoreReader<Reading extends StoreReading = StoreReading> {
  /** The group of this instance. */
  readonly group: string;
  readonly namespace: string;
  /** Milliseconds since this instance saw every partition cleaned up or, before the first time, since it started. */
  readonly cleanupAge: number;
  /** Rejects when the store fails. */
  read(): Promise<Reading>;
}

export interface SessionReader extends StoreReader<SessionReading> {
  /** Whether Redis announces expired sessions to this instance, a `KeyspaceState` or `'off'`. */
  readonly notifications: string;
}

// Stores with work in the background provide these globally: a `SessionReader`, a `StoreReader<DeadlineReading>` and a
// `HealthLook`.
export const SESSION_READER = Symbol('SESSION_READER');
export const DEADLINE_READER = Symbol('DEADLINE_READER');
export const SESSION_HEALTH = Symbol('SESSION_HEALTH');

/** The injection token of the store of deadlines, for who needs no more of it than its namespace. */
export const MEASURED_DEADLINES = Symbol('MEASURED_DEADLINES');

/** A store that is told from others by its namespace; empty: it has none. */
export interface MeasuredNamespace {
  readonly namespace: string;
}

/** What a look at the sessions has found. */
export interface SessionHealthReport {
  /** Whether sessions can be loaded and all works, sessions can be loaded, or not even that. */
  readonly state: 'up' | 'degraded' | 'down';
  /** For everybody to read: words and numbers, no address, password, id or value. */
  readonly data: Readonly<Record<string, unknown>>;
}

export interface HealthLook {
  /** `late`: the age in milliseconds from which on an unread event is late. Resolves within the command timeout. */
  look(late: number): Promise<SessionHealthReport>;
}
