import { ATTRIBUTES } from '../instrumentation/attributes.js';

/** What an instrument is, and what its values mean. */
export interface Instrument {
  readonly name: string;
  readonly unit: string;
  readonly description: string;
  /** Beside the namespace, which all of `nest_session.` have. */
  readonly attributes: readonly string[];
}

/** An instrument with the upper bounds of its buckets. */
export interface HistogramInstrument extends Instrument {
  readonly buckets: readonly number[];
}

const { group, handler, eventType, errorType, deadlineName } = ATTRIBUTES;
const MESSAGING = [ATTRIBUTES.operationName, ATTRIBUTES.system, ATTRIBUTES.destination, group, errorType];

// The semantic conventions give the first two, for calls of databases and for messages.
const OF_CALLS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10];
const OF_MESSAGES = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
const OF_DELAYS = [...OF_MESSAGES, 30, 60, 120, 300, 600, 1800, 3600];
const OF_SIZES = [256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576];

/** What is measured at each call. */
export const HISTOGRAMS = {
  operationDuration: {
    name: 'nest_session.operation.duration',
    unit: 's',
    description: 'Duration of the calls of the session store.',
    attributes: [ATTRIBUTES.operation, ATTRIBUTES.outcome, errorType],
    buckets: OF_CALLS,
  },
  sessionSize: {
    name: 'nest_session.session.size',
    unit: 'By',
    description: 'Size of the names and texts of all attributes of a loaded session.',
    attributes: [],
    buckets: OF_SIZES,
  },
  expirationDelay: {
    name: 'nest_session.expiration.delay',
    unit: 's',
    description: 'Time from the end of a session until it was noticed.',
    attributes: [ATTRIBUTES.noticedBy],
    buckets: OF_DELAYS,
  },
  deadlineOperationDuration: {
    name: 'nest_session.deadline.operation.duration',
    unit: 's',
    description: 'Duration of the calls of Deadlines.',
    attributes: [ATTRIBUTES.operation, deadlineName, ATTRIBUTES.outcome, errorType],
    buckets: OF_CALLS,
  },
  deadlineDelay: {
    name: 'nest_session.deadline.delay',
    unit: 's',
    description: 'Time from the moment in which a deadline was due until it was noticed.',
    attributes: [ATTRIBUTES.noticedBy],
    buckets: OF_DELAYS,
  },
  processDuration: {
    name: 'nest_session.event.process.duration',
    unit: 's',
    description: 'Duration of the calls of event handlers.',
    attributes: [group, eventType, deadlineName, handler, errorType],
    buckets: OF_MESSAGES,
  },
  eventDelay: {
    name: 'nest_session.event.delay',
    unit: 's',
    description: 'Time from the recording of an event until a handler was first called with it.',
    attributes: [group, eventType, deadlineName],
    buckets: OF_DELAYS,
  },
  messagingProcessDuration: {
    name: 'messaging.process.duration',
    unit: 's',
    description: 'Duration of processing operation.',
    attributes: MESSAGING,
    buckets: OF_MESSAGES,
  },
} as const satisfies Record<string, HistogramInstrument>;

/** What is counted as it happens. */
export const COUNTERS = {
  outages: {
    name: 'nest_session.request.outages',
    unit: '{request}',
    description: 'Requests that needed their session while the store failed.',
    attributes: [ATTRIBUTES.outagePolicy],
  },
  created: {
    name: 'nest_session.sessions.created',
    unit: '{session}',
    description: 'Sessions that were stored for the first time.',
    attributes: [],
  },
  ended: {
    name: 'nest_session.sessions.ended',
    unit: '{session}',
    description: 'Sessions that were deleted or have expired.',
    attributes: [ATTRIBUTES.endReason],
  },
  retried: {
    name: 'nest_session.events.retried',
    unit: '{event}',
    description: 'Calls of event handlers after a failed attempt.',
    attributes: [group, handler],
  },
  deadLettered: {
    name: 'nest_session.events.dead_lettered',
    unit: '{event}',
    description: 'Events that became dead letters.',
    attributes: [group, handler],
  },
  securityEvents: {
    name: 'nest_session.security.events',
    unit: '{event}',
    description: 'Security events.',
    attributes: [ATTRIBUTES.securityKind],
  },
  consumedMessages: {
    name: 'messaging.client.consumed.messages',
    unit: '{message}',
    description: 'Number of messages that were delivered to the application.',
    attributes: MESSAGING,
  },
} as const satisfies Record<string, Instrument>;

/** What is read from the store at each collection, as it is then. */
export const GAUGES = {
  sessionCount: {
    name: 'nest_session.session.count',
    unit: '{session}',
    description: 'Live sessions that can end by themselves. Every instance reports the same.',
    attributes: [],
  },
  overdue: {
    name: 'nest_session.expiration.overdue',
    unit: 's',
    description: 'How long ago the oldest end was due that nobody has noticed. Every instance reports the same.',
    attributes: [],
  },
  deadlineCount: {
    name: 'nest_session.deadline.count',
    unit: '{deadline}',
    description: 'Deadlines that wait. Every instance reports the same.',
    attributes: [deadlineName],
  },
  deadlineOverdue: {
    name: 'nest_session.deadline.overdue',
    unit: 's',
    description: 'How long ago the oldest deadline was due that still waits. Every instance reports the same.',
    attributes: [deadlineName],
  },
  cleanupAge: {
    name: 'nest_session.cleanup.age',
    unit: 's',
    description: 'Time since this instance saw all of the store cleaned up.',
    attributes: [],
  },
  lag: {
    name: 'nest_session.event.lag',
    unit: '{event}',
    description: 'Events that a group has not read. Every instance reports the same.',
    attributes: [group],
  },
  pending: {
    name: 'nest_session.event.pending',
    unit: '{event}',
    description: 'Events that a group has read and not finished. Every instance reports the same.',
    attributes: [group],
  },
  retrying: {
    name: 'nest_session.event.retrying',
    unit: '{event}',
    description: 'Events of a group that wait for a retry. Every instance reports the same.',
    attributes: [group],
  },
  oldestUnreadAge: {
    name: 'nest_session.event.oldest_unread.age',
    unit: 's',
    description: 'Age of the oldest event that a group has not read. Every instance reports the same.',
    attributes: [group],
  },
  deadLetters: {
    name: 'nest_session.dead_letter.count',
    unit: '{letter}',
    description: 'Dead letters of a group. Every instance reports the same.',
    attributes: [group],
  },
} as const satisfies Record<string, Instrument>;

/** What the store has counted itself. */
export const OBSERVED_COUNTERS = {
  dropped: {
    name: 'nest_session.events.dropped',
    unit: '{event}',
    description: 'Events that were removed before a group had handled them. Every instance reports the same.',
    attributes: [group],
  },
} as const satisfies Record<string, Instrument>;

/** What is 1 for the state that something is in, and 0 for all others. */
export const STATES = {
  notifications: {
    name: 'nest_session.notifications.status',
    unit: '1',
    description: 'Whether Redis announces expired sessions to this instance: 1 for the state that it is in.',
    attributes: [ATTRIBUTES.notifications],
  },
} as const satisfies Record<string, Instrument>;
