// `@nest-session/timers/bullmq`: a timer for the option `expirations`. Needs the package bullmq.
export { BullMqSessionTimer, type BullMqSessionTimerOptions } from './bull-mq-session-timer.js';
