import { ATTRIBUTES } from '../sdk-calls.js';

export interface Instrument {
  readonly name: string;
  readonly unit: string;
  readonly description: string;
  /** Beside the namespace, which all of `nest_session.` have. */
  readonly attributes: readonly string[];
}

export interface HistogramInstrument extends Instrument {
  readonly buckets: readonly number[];
}

/** One of our own. `name`: without the `nest_session.` before it. */
function own(name: string, unit: string, description: string, attributes: readonly string[] = []): Instrument {
  return { name: `nest_session.${name}`, unit, description, attributes };
}

/** One of our own that every instance reads from the store. */
function ofStore(name: string, unit: string, description: string, attributes?: readonly string[]): Instrument {
  return own(name, unit, `${description} Every instance reports the same.`, attributes);
}

function histogram(buckets: readonly number[], instrument: Instrument): HistogramInstrument {
  return { ...instrument, buckets };
}

const { operation, outcome, group, handler, eventType, errorType, deadlineName, noticedBy } = ATTRIBUTES;
const MESSAGING = [ATTRIBUTES.operationName, ATTRIBUTES.system, ATTRIBUTES.destination, group, errorType];

// The semantic conventions give the first two, for calls of databases and for messages.
const OF_CALLS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10];
const OF_MESSAGES = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
const OF_DELAYS = [...OF_MESSAGES, 30, 60, 120, 300, 600, 1800, 3600];
const OF_SIZES = [256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576];

export const HISTOGRAMS = {
  operationDuration: histogram(
    OF_CALLS,
    own('operation.duration', 's', 'Duration of the calls of the session store.', [operation, outcome, errorType]),
  ),
  sessionSize: histogram(
    OF_SIZES,
    own('session.size', 'By', 'Size of the names and texts of all attributes of a loaded session.'),
  ),
  expirationDelay: histogram(
    OF_DELAYS,
    own('expiration.delay', 's', 'Time from the end of a session until it was noticed.', [noticedBy]),
  ),
  deadlineOperationDuration: histogram(
    OF_CALLS,
    own('deadline.operation.duration', 's', 'Duration of the calls of Deadlines.', [
      operation,
      deadlineName,
      outcome,
      errorType,
    ]),
  ),
  deadlineDelay: histogram(
    OF_DELAYS,
    own('deadline.delay', 's', 'Time from the moment in which a deadline was due until it was noticed.', [noticedBy]),
  ),
  processDuration: histogram(
    OF_MESSAGES,
    own('event.process.duration', 's', 'Duration of the calls of event handlers.', [
      group,
      eventType,
      deadlineName,
      handler,
      errorType,
    ]),
  ),
  eventDelay: histogram(
    OF_DELAYS,
    own('event.delay', 's', 'Time from the recording of an event until a handler was first called with it.', [
      group,
      eventType,
      deadlineName,
    ]),
  ),
  messagingProcessDuration: histogram(OF_MESSAGES, {
    name: 'messaging.process.duration',
    unit: 's',
    description: 'Duration of processing operation.',
    attributes: MESSAGING,
  }),
};

export const COUNTERS = {
  outages: own('request.outages', '{request}', 'Requests that needed their session while the store failed.', [
    ATTRIBUTES.outagePolicy,
  ]),
  created: own('sessions.created', '{session}', 'Sessions that were stored for the first time.'),
  ended: own('sessions.ended', '{session}', 'Sessions that were deleted or have expired.', [ATTRIBUTES.endReason]),
  retried: own('events.retried', '{event}', 'Calls of event handlers after a failed attempt.', [group, handler]),
  deadLettered: own('events.dead_lettered', '{event}', 'Events that became dead letters.', [group, handler]),
  securityEvents: own('security.events', '{event}', 'Security events.', [ATTRIBUTES.securityKind]),
  registrations: own('device.registrations', '{registration}', 'Bindings of sessions to browsers.', [outcome]),
  refreshes: own('device.refreshes', '{refresh}', 'Proofs that browsers had to renew.', [outcome]),
  requests: own('device.requests', '{request}', 'Requests of signed-in users, by the proof of the browser.', [outcome]),
  consumedMessages: {
    name: 'messaging.client.consumed.messages',
    unit: '{message}',
    description: 'Number of messages that were delivered to the application.',
    attributes: MESSAGING,
  },
};

/** What is read from the store at each collection, as it is then. */
export const GAUGES = {
  sessionCount: ofStore('session.count', '{session}', 'Live sessions that can end by themselves.'),
  overdue: ofStore('expiration.overdue', 's', 'How long ago the oldest end was due that nobody has noticed.'),
  deadlineCount: ofStore('deadline.count', '{deadline}', 'Deadlines that wait.', [deadlineName]),
  deadlineOverdue: ofStore('deadline.overdue', 's', 'How long ago the oldest deadline was due that still waits.', [
    deadlineName,
  ]),
  cleanupAge: own('cleanup.age', 's', 'Time since this instance saw all of the store cleaned up.'),
  lag: ofStore('event.lag', '{event}', 'Events that a group has not read.', [group]),
  pending: ofStore('event.pending', '{event}', 'Events that a group has read and not finished.', [group]),
  retrying: ofStore('event.retrying', '{event}', 'Events of a group that wait for a retry.', [group]),
  oldestUnreadAge: ofStore('event.oldest_unread.age', 's', 'Age of the oldest event that a group has not read.', [
    group,
  ]),
  deadLetters: ofStore('dead_letter.count', '{letter}', 'Dead letters of a group.', [group]),
};

export const OBSERVED_COUNTERS = {
  dropped: ofStore('events.dropped', '{event}', 'Events that were removed before a group had handled them.', [group]),
};

/** What is 1 for the state that something is in, and 0 for all others. */
export const STATES = {
  notifications: own(
    'notifications.status',
    '1',
    'Whether Redis announces expired sessions to this instance: 1 for the state that it is in.',
    [ATTRIBUTES.notifications],
  ),
};
