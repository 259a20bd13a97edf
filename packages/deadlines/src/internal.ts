// `@nest-session/deadlines/internal`: what the packages of @nest-session share. Not for applications, and outside of
// semantic versioning: it changes with every version.
export { DeadlineHandlerModule } from './deadlines/deadline-handler.module.js';
export { DeadlineDispatcher } from './deadlines/deadline.dispatcher.js';
export { type DeadlinePage, DeadlineStore, FIRED_KNOWN_FOR, type StoredDeadline } from './deadlines/deadline.store.js';
export { MapDeadlineLoop } from './deadlines/map-deadline.loop.js';
export { MAP_DEADLINE_CLOCK } from './deadlines/map-deadline.module.js';
