// `@nest-session/redis/bullmq`: a timer for the option `expirations`. Needs the package bullmq.
export { BullMqSessionTimer, type BullMqSessionTimerOptions } from './timers/bull-mq-session-timer.js';
