/** The names of all attributes of metrics and spans. None of them grows with the number of users or sessions. */
export const ATTRIBUTES = {
  namespace: 'nest_session.namespace',
  operation: 'nest_session.operation',
  outcome: 'nest_session.outcome',
  outagePolicy: 'nest_session.outage.policy',
  endReason: 'nest_session.end.reason',
  noticedBy: 'nest_session.noticed_by',
  deadlineName: 'nest_session.deadline.name',
  eventType: 'nest_session.event.type',
  handler: 'nest_session.handler',
  notifications: 'nest_session.notifications.state',
  securityKind: 'nest_session.security.kind',
  errorType: 'error.type',
  group: 'messaging.consumer.group.name',
  system: 'messaging.system',
  destination: 'messaging.destination.name',
  operationName: 'messaging.operation.name',
  operationType: 'messaging.operation.type',
} as const;

/** The name of the meter and of the tracer. */
export const SCOPE = '@nest-session/opentelemetry';

/** The value of `messaging.system`. */
export const SYSTEM = 'nest_session';
