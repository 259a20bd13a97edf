// `@nest-session/spring/internal`: what the packages of @nest-session share. Not for applications, and outside of
// semantic versioning: it changes with every version.
export {
  modeOfNamespace,
  namespaceOfSpring,
  namespaceProblemWith,
  SharedKeys,
  SpringKeys,
  type SpringMode,
  storedIds,
} from './keys/spring-keys.js';
export { lookAtSpring, type SpringOverview } from './look/spring-look.js';
export { EXPIRED_FIELD, readSpringFields } from './read/spring-session.js';
export { SharedScripts } from './scripts/shared/shared.scripts.js';
export { SpringScripts } from './scripts/spring/spring.scripts.js';
export { dataHere } from './shared/shared-event-producer.js';
export { toSharedRecord } from './shared/shared-session.repository.js';
export { readStoredValue } from './values/stored-value.js';
