// `@nest-session/deadlines`: moments of your application, by keys of your own.

export { deadline, type DataOf, type Deadline } from './deadlines/deadline.js';
export type { DeadlineTime } from './deadlines/deadline-arguments.js';
export { DeadlineModule } from './deadlines/deadline.module.js';
export type { DeadlineModuleOptions, DeadlineOptionsFactory } from './deadlines/deadline.options.js';
export {
  type CancelOutcome,
  type DeadlineData,
  Deadlines,
  type ListOptions,
  type RescheduleOutcome,
  type ScheduledDeadline,
  type ScheduleOptions,
  type ScheduleOutcome,
} from './deadlines/deadlines.js';
export { DeadlineEvent, type DeadlineEventInit } from './deadlines/deadline-event.js';
export { OnDeadline, type OnDeadlineOptions } from './deadlines/on-deadline.decorator.js';
export { type DeadlineDeadLetter, DeadlineEvents, type DeadlineGroupInfo } from './deadlines/deadline.events.js';
export { type DeadlineBound, DeadlineBoundError, DeadlineDataError } from './deadlines/deadline.errors.js';
export { MapDeadlineModule } from './deadlines/map-deadline.module.js';
export type { MapDeadlineModuleOptions } from './deadlines/map-deadline.options.js';
