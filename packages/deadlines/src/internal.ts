// `@nest-session/deadlines/internal`: what the packages of @nest-session share. Not for applications, and outside of
// semantic versioning: it changes with every version.
export { DeadlineDispatcher, DeadlineHandlerModule } from './deadlines/deadline-handlers.js';
export { type DeadlinePage, DeadlineStore, FIRED_KNOWN_FOR, type StoredDeadline } from './deadlines/deadline.store.js';
export { MAP_DEADLINE_CLOCK, MapDeadlineDelivery } from './deadlines/map-deadline.module.js';
