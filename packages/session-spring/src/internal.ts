// `@nest-session/spring/internal`: what the packages of @nest-session share. Not for applications, and outside of
// semantic versioning: it changes with every version.
export {
  modeOfNamespace,
  namespaceBeside,
  namespaceOfSpring,
  namespaceProblemWith,
  problemsWithSpring,
  readSerializer,
  readSpring,
  type SpringMode,
} from './configuration/spring.options.js';
export { SharedKeys } from './keys/shared-keys.js';
export { SpringKeys } from './keys/spring-keys.js';
export { storedIds } from './keys/stored-ids.js';
export { lookAtSpring, type SpringLook } from './look/spring-look.js';
export type { SpringOverview } from './look/spring-overview.js';
export { SPRING_RULES, type SpringRule } from './look/spring-rules.js';
export { readSpringFields } from './read/spring-fields.js';
export { SpringSessionRepository } from './read/spring-session.repository.js';
export { SharedScripts } from './scripts/shared/shared.scripts.js';
export { SpringScripts } from './scripts/spring/spring.scripts.js';
export { dataHere } from './shared/shared-event-data.js';
export { toSharedRecord } from './shared/shared-record.js';
export { SharedSessionListener } from './shared/shared-session.listener.js';
export { SharedSessionRepository } from './shared/shared-session.repository.js';
export { SharedSessionSweeper } from './shared/shared-session.sweeper.js';
export { SHARED_PROVIDERS } from './shared/shared.providers.js';
export { SpringApplicationCheck } from './shared/spring-application.check.js';
export { SpringJsonSerializer } from './values/spring-json.serializer.js';
export { readStoredValue } from './values/stored-value.js';
