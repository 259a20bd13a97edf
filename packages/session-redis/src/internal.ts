// `@nest-session/redis/internal`: what the packages of @nest-session share. Not for applications, and outside of
// semantic versioning: it changes with every version.
export { RETRY, untilSound } from './connection/until-sound.js';
export { FailureLog } from './logging/failure.log.js';
export { settledWithin } from './timing/settled-within.js';
