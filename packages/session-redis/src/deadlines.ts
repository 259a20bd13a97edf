// `@nest-session/redis/deadlines`: the deadlines of `@nest-session/core/deadlines`, in Redis.

export { RedisDeadlineModule } from './deadlines/redis-deadline.module.js';
export type { RedisDeadlineModuleOptions, RedisDeadlineOptionsFactory } from './deadlines/redis-deadline.options.js';
