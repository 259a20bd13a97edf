// `@nest-session/redis/internal`: what the packages of @nest-session share. Not for applications, and outside of
// semantic versioning: it changes with every version.
export {
  type RedisSessionModuleOptions,
  type ResolvedRedisSessionOptions,
  resolveRedisSessionOptions,
} from './configuration/redis-session.options.js';
export {
  modeOfNamespace,
  namespaceOfSpring,
  namespaceProblemWith,
  type SpringMode,
} from './configuration/spring.options.js';
export { VERSION } from './configuration/version.js';
export { pages, type ReadPage } from './expiration/scan-pages.js';
export { countSessions } from './health/redis-session.reader.js';
export { ID_PATTERN } from './keys/id-pattern.js';
export { ATTRIBUTE_FIELD, SessionKeys } from './keys/session-keys.js';
export { SessionPartitions } from './keys/session-partitions.js';
export { hashOfPrincipal } from './repository/hashed-indexes.js';
export { ListedSessions } from './repository/listed-sessions.js';
export { raiseEpochs } from './repository/raise-epochs.js';
export { hasIndexEntry, NO_KEY, toListedInfo } from './repository/session-hash.js';
export { SCRIPT_SOURCES, sourcesIn } from './scripts/script-sources.js';
export { keepingRules } from './scripts/session/keeping-rules.js';
export { SessionScripts } from './scripts/session/session.scripts.js';
export { SharedScripts } from './scripts/shared/shared.scripts.js';
export { SpringScripts } from './scripts/spring/spring.scripts.js';
export { SESSION_ENTRIES } from './session-events/session-event-producer.js';
export { dataHere } from './session-events/shared-event-data.js';
export { toSharedRecord } from './spring-shared/shared-record.js';
export { readStoredValue } from './spring-values/stored-value.js';
export { SharedKeys } from './spring/shared-keys.js';
export { readSpringFields } from './spring/spring-fields.js';
export { SpringKeys } from './spring/spring-keys.js';
export { lookAtSpring, type SpringLook } from './spring/spring-look.js';
export type { SpringOverview } from './spring/spring-overview.js';
export { SPRING_RULES, type SpringRule } from './spring/spring-rules.js';
export { storedIds } from './spring/stored-ids.js';
export { type EncryptionOptions, readEncryption } from './configuration/encryption.options.js';
export { decrypt, encrypt } from './encryption/aes-gcm.js';
export { DataKey } from './encryption/data-key.js';
export { type EncryptionRules } from './encryption/encrypted-session.js';
export { writesPlain } from './encryption/plain-values.js';
export { tracedPass } from './expiration/traced-sweep.js';
