// `@nest-session/deadlines/redis/internal`: what the packages of @nest-session share. Not for applications, and outside
// of semantic versioning: it changes with every version.
export { DEADLINE_ENTRIES, DeadlineKeys, DeadlinePartitions } from './redis/deadline-keys.js';
export { waitingDeadlines } from './redis/redis-deadline.store.js';
export { DeadlineScripts } from './scripts/deadlines/deadline.scripts.js';
export { LUA_SOURCES as DEADLINE_SOURCES } from './scripts/lua-sources.js';
