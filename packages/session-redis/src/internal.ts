// `@nest-session/redis/internal`: what the packages of @nest-session share. Not for applications, and outside of
// semantic versioning: it changes with every version.
export { ofSessionModule } from '@nest-session/core/internal';
export {
  readCleanup,
  readReplicas,
  type RedisSessionModuleOptions,
  type ResolvedRedisSessionOptions,
  resolveRedisSessionOptions,
} from './configuration/redis-session.options.js';
export {
  END_NOTIFICATIONS,
  type EndNotifications,
  REQUEST_SESSION_SCRIPTS,
  SESSION_REPOSITORY_OPTIONS,
  SHADOW_KEY_LISTENER,
} from './configuration/redis-session.tokens.js';
export { shownDetails, shownFacts } from './configuration/start-facts.js';
export { type EncryptionOptions, readEncryption } from './configuration/encryption.options.js';
export { DataKey, decrypt, encrypt } from './encryption/data-key.js';
export { type EncryptionRules, writesPlain } from './encryption/session-encryption.js';
export { SessionExpirationSweeper, tracedPoller } from './expiration/session-expiration.sweeper.js';
export { countSessions } from './health/session-health.js';
export { lookUpListed } from './keys/rotated-sessions.js';
export { batchesOf, pages, storedSessionIds } from './keys/scan-pages.js';
export { ATTRIBUTE_FIELD, ID_PATTERN, SessionKeys } from './keys/session-keys.js';
export { SessionPartitions } from './keys/session-partitions.js';
export { hashOfPrincipal, hashOfValue } from './keys/session-keys.js';
export { leaveRevocationMark, ListedSessions } from './repository/listed-sessions.js';
export { raiseEpochs } from './repository/session-epochs.js';
export { hasIndexEntry, NO_KEY, toListedInfo } from './repository/session-hash.js';
export { SCRIPT_SOURCES, sourcesIn } from './scripts/script-sources.js';
export {
  ageOf,
  howToLeave,
  keepingRules,
  pushChange,
  type ScriptReply,
  SessionScripts,
  toCreateReply,
  toEndReply,
  toUpdateReply,
} from './scripts/session/session.scripts.js';
export { SESSION_ENTRIES, SessionEventProducer } from './session-events/session-event-producer.js';
export { sessionStoreProviders, STORE_EXPORTS } from './store.providers.js';
