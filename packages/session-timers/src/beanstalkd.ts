// `@nest-session/timers/beanstalkd`: a timer for the option `expirations`. Needs the package jackd.
export { BeanstalkdSessionTimer, type BeanstalkdSessionTimerOptions } from './beanstalkd-session-timer.js';
