// `@nest-session/deadlines`: moments of your application, by keys of your own.

export {
  deadline,
  type DataOf,
  type Deadline,
  DeadlineEvent,
  type DeadlineEventInit,
} from './deadlines/deadline-event.js';
export { DeadlineModule, type DeadlineOptionsFactory } from './deadlines/deadline.module.js';
export {
  type DeadlineData,
  type DeadlineModuleOptions,
  Deadlines,
  type DeadlineTime,
  type ListOptions,
  type ScheduleOptions,
} from './deadlines/deadlines.js';
export type {
  CancelOutcome,
  RescheduleOutcome,
  ScheduledDeadline,
  ScheduleOutcome,
} from './deadlines/deadline.store.js';
export { OnDeadline, type OnDeadlineOptions } from './deadlines/deadline-handlers.js';
export { type DeadlineDeadLetter, DeadlineEvents, type DeadlineGroupInfo } from './deadlines/deadline-event-groups.js';
export { type DeadlineBound, DeadlineBoundError, DeadlineDataError } from './deadlines/deadline.errors.js';
export { MapDeadlineModule, type MapDeadlineModuleOptions } from './deadlines/map-deadline.module.js';
