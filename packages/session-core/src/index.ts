// the session
export {
  PRINCIPAL_NAME_INDEX_NAME,
  Session,
  type ReadonlySession,
  type SaveOutcome,
  type SessionAttributes,
} from './session/session.js';

// the module
export { SessionModule } from './session.module.js';
export type { SessionOptionsFactory } from './session.module-definition.js';
export type { SessionModuleOptions } from './session.options.js';
export type { SessionRequestLike } from './options/session-request-like.js';
export type { CookieAttributes, CookieOptions } from './http/resolvers/cookie.options.js';
export type { Duration } from './options/duration.js';

// ids
export { RandomSessionIdGenerator, SessionIdGenerator } from './session/session-id.generator.js';

// in a request
export { SessionAttribute, SessionId } from './http/session.decorators.js';
export { SessionManager } from './http/session-manager.js';
export { SessionContext } from './http/session-context.js';
export { KeepSessionIdle, SessionOptional, SessionRequired } from './http/session-route.decorators.js';
export { SessionInterceptor } from './http/session.interceptor.js';
export { CookieSessionIdResolver } from './http/resolvers/cookie-session-id.resolver.js';
export { CompositeSessionIdResolver } from './http/resolvers/composite-session-id.resolver.js';
export { HeaderSessionIdResolver } from './http/resolvers/header-session-id.resolver.js';
export { type SessionClient, SessionIdResolver } from './http/resolvers/session-id.resolver.js';
export { RememberMe } from './http/remember-me.js';

// events
export {
  OnSessionEvent,
  type OnSessionEventOptions,
  type SessionEventClass,
} from './events/on-session-event.decorator.js';
export { OnSessionEventGap, type SessionEventGap } from './events/on-session-event-gap.decorator.js';
export {
  SessionCreatedEvent,
  SessionDeletedEvent,
  SessionDestroyedEvent,
  SessionEvent,
  SessionExpiredEvent,
  SessionIdChangedEvent,
  type SessionEventInit,
  type SessionEventType,
} from './events/session.events.js';

// stores
export { IndexedSessionRepository } from './repository/indexed-session.repository.js';
export { SessionRepository, type SessionRepositoryOptions, type TouchReply } from './repository/session.repository.js';
export { MapSessionModule } from './repository/map-session.module.js';
export type { MapSessionModuleOptions } from './repository/map-session.options.js';
export { MapSessionRepository, type MapSessionRepositoryOptions } from './repository/map-session.repository.js';

// errors
export {
  InvalidSessionOptionsError,
  SessionAttributeError,
  SessionStateError,
  SessionStoreError,
} from './session.errors.js';

// For authors of stores
export type { Clock } from './repository/map-session.store.js';
export { TrackedSession } from './session/tracked-session.js';
export type {
  CreateSession,
  DeleteSession,
  IndexChanges,
  SessionChange,
  SessionRecord,
  TouchSession,
  UpdateSession,
  WriteReply,
} from './session/session-record.js';
export type { AttributeChanges } from './session/tracked-attributes.js';
export { SessionSnapshot } from './session/session-snapshot.js';
export { AttributeSerializer, SerializationProblem } from './session/attribute.serializer.js';
export { JsonAttributeSerializer } from './session/json-attribute.serializer.js';
export { generateSessionKey, SessionIds, type SessionIdForm } from './session/session-ids.js';
export { isWellFormedSessionId, SessionToken, sessionTokenOf, type SessionKey } from './session/session-key.js';
export { SessionEventDispatcher, type DispatchOptions } from './events/session-event.dispatcher.js';
export { SessionEventHandlingError, type FailedHandler } from './events/session-event-handling.error.js';
export { PollingLoop } from './repository/polling.loop.js';
export { OptionReader } from './options/option.reader.js';
export { parseDuration } from './options/duration.js';
export { SESSION_OPTIONS } from './session.module-definition.js';
export type { ResolvedSessionOptions } from './session.options.js';
export type { ResolvedCookieOptions } from './http/resolvers/cookie.options.js';
