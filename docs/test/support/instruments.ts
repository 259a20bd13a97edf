/** An instrument of `@nest-session/opentelemetry`. */
export interface Instrument {
  readonly name: string;
  readonly unit: string;
  /** Beside the namespace. */
  readonly attributes: readonly string[];
}

const GROUP = 'messaging.consumer.group.name';
const [HANDLER, EVENT_TYPE] = ['nest_session.handler', 'nest_session.event.type'];

export const HISTOGRAMS = [
  {
    name: 'nest_session.operation.duration',
    unit: 's',
    attributes: ['nest_session.operation', 'nest_session.outcome', 'error.type'],
  },
  { name: 'nest_session.session.size', unit: 'By', attributes: [] },
  { name: 'nest_session.expiration.delay', unit: 's', attributes: ['nest_session.noticed_by'] },
  {
    name: 'nest_session.event.process.duration',
    unit: 's',
    attributes: [GROUP, EVENT_TYPE, HANDLER, 'error.type'],
  },
  { name: 'nest_session.event.delay', unit: 's', attributes: [GROUP, EVENT_TYPE] },
];

export const COUNTERS = [
  { name: 'nest_session.request.outages', unit: '{request}', attributes: ['nest_session.outage.policy'] },
  { name: 'nest_session.sessions.created', unit: '{session}', attributes: [] },
  { name: 'nest_session.sessions.ended', unit: '{session}', attributes: ['nest_session.end.reason'] },
  { name: 'nest_session.events.retried', unit: '{event}', attributes: [GROUP, HANDLER] },
  { name: 'nest_session.events.dead_lettered', unit: '{event}', attributes: [GROUP, HANDLER] },
  { name: 'nest_session.security.events', unit: '{event}', attributes: ['nest_session.security.kind'] },
];

export const OBSERVED_COUNTERS = [{ name: 'nest_session.events.dropped', unit: '{event}', attributes: [GROUP] }];

export const GAUGES = [
  { name: 'nest_session.session.count', unit: '{session}', attributes: [] },
  { name: 'nest_session.expiration.overdue', unit: 's', attributes: [] },
  { name: 'nest_session.cleanup.age', unit: 's', attributes: [] },
  { name: 'nest_session.event.lag', unit: '{event}', attributes: [GROUP] },
  { name: 'nest_session.event.pending', unit: '{event}', attributes: [GROUP] },
  { name: 'nest_session.event.retrying', unit: '{event}', attributes: [GROUP] },
  { name: 'nest_session.event.oldest_unread.age', unit: 's', attributes: [GROUP] },
  { name: 'nest_session.dead_letter.count', unit: '{letter}', attributes: [GROUP] },
];

export const STATES = [
  { name: 'nest_session.notifications.status', unit: '1', attributes: ['nest_session.notifications.state'] },
];
