// `@nest-session/core/store`: what authors of stores need besides `@nest-session/core`.

// the port
export {
  type SessionRepositoryOptions,
  type StorePrimitives,
  storePrimitivesOf,
} from './repository/session.repository.js';
export { toSessionInfo } from './session/session-info.js';
export type { SessionRecord, StoredText, UnreadText } from './session/session-record.js';
export type {
  AttributeChanges,
  ContentBounds,
  CreateReply,
  CreateSession,
  DeleteReply,
  DeleteSession,
  IndexChanges,
  KeptAttributes,
  SessionChange,
  SessionLimit,
  TouchReply,
  TouchSession,
  UpdateReply,
  UpdateSession,
  WriteReply,
} from './session/session-change.js';
export type { MaxSessions } from './session/session-limit.js';
export { isOwnAttribute } from './session/own-attributes.js';
export { exceededBound, type SessionBounds } from './session/session-bounds.js';
export { isKept } from './session/sign-in.js';
export { SHOWN_SESSION } from './session/shown-session.js';
export { TrackedSession } from './session/tracked-session.js';

// indexes
export { SessionIndexes } from './session/session-indexes.js';

// ids
export { generateSessionKey, SessionIds, type SessionIdForm } from './session/session-ids.js';
export { isWellFormedSessionId, type SessionKey } from './session/session-token.js';

// events
export { SessionEventDispatcher, type DispatchOptions } from './events/session-event.dispatcher.js';
export { SessionEventHandlingError, type FailedHandler } from './events/session-event-handling.error.js';
export type { SessionEventInit } from './events/session.events.js';
export { SessionSnapshot } from './session/session-snapshot.js';

export { SecurityEvents, type SecurityReport } from './security-events/security.events.js';

// logging
export { OneLineLogger } from './logging/one-line.logger.js';
export { shownError, shownStack, shownText } from './logging/shown-error.js';

// the module of a store
export { SESSION_OPTIONS } from './configuration/session.module-definition.js';
export type { ResolvedSessionOptions } from './configuration/session.options.js';
export { explainInjection, injectDependencies } from './option-reading/injected-dependencies.js';
export { OptionReader } from './option-reading/option.reader.js';
export { parseDuration } from './option-reading/duration.js';
export { type StepBefore, TurnQueue } from './session/turn.queue.js';
export { PollingLoop } from './background/polling.loop.js';
export type { ResolvedCookieOptions } from './resolvers/cookie.options.js';

// the in-memory store, as a model
export type { MapSessionRepositoryOptions } from './memory/map-session.repository.js';
export type { Clock } from './memory/map-session.store.js';
