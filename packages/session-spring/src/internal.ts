// `@nest-session/spring/internal`: what the packages of @nest-session share. Not for applications, and outside of
// semantic versioning: it changes with every version.
export { SharedKeys } from './keys/shared-keys.js';
export { SpringKeys } from './keys/spring-keys.js';
export { modeOfNamespace, namespaceOfSpring, namespaceProblemWith, type SpringMode } from './keys/spring-namespace.js';
export { storedIds } from './keys/stored-ids.js';
export { lookAtSpring, type SpringLook } from './look/spring-look.js';
export type { SpringOverview } from './look/spring-overview.js';
export { SPRING_RULES, type SpringRule } from './look/spring-rules.js';
export { readSpringFields } from './read/spring-fields.js';
export { SharedScripts } from './scripts/shared/shared.scripts.js';
export { SpringScripts } from './scripts/spring/spring.scripts.js';
export { dataHere } from './shared/shared-event-data.js';
export { toSharedRecord } from './shared/shared-record.js';
export { readStoredValue } from './values/stored-value.js';
