// `@nest-session/deadlines/redis`: the deadlines of `@nest-session/deadlines`, in Redis.

export { RedisDeadlineModule } from './redis/redis-deadline.module.js';
export type { RedisDeadlineModuleOptions, RedisDeadlineOptionsFactory } from './redis/redis-deadline.options.js';
