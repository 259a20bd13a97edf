// `@nest-session/redis/beanstalkd`: a timer for the option `expirations`. Needs the package jackd.
export { BeanstalkdSessionTimer, type BeanstalkdSessionTimerOptions } from './timers/beanstalkd-session-timer.js';
