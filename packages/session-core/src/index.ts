// `@nest-session/core`: what applications need. Authors of stores also import `@nest-session/core/store`.

// the module
export { SessionModule } from './session.module.js';
export type { SessionOptionsFactory } from './configuration/session.module-definition.js';
export type { SessionModuleOptions } from './configuration/session.options.js';
export type { SecurityLevel } from './option-reading/security-level.js';
export type { MaxSessionsOptions, WhenMaxSessionsReached } from './configuration/max-sessions.options.js';
export type { BoundsOptions } from './configuration/bounds.options.js';
export type { DeviceAddress, DeviceOptions } from './configuration/device.options.js';
export type { HttpRequestLike } from './option-reading/http-request-like.js';
export type { CookieAttributes, CookieOptions } from './resolvers/cookie.options.js';
export type { Duration } from './option-reading/duration.js';

// the session
export { Session, SessionAttribute, SessionId } from './http/session.decorators.js';
export {
  PRINCIPAL_NAME_INDEX_NAME,
  type ReadonlySession,
  type SaveOutcome,
  type SignInOptions,
} from './session/session.js';
export type { SessionDevice, SessionInfo } from './session/session-info.js';
export { sessionAttribute, type SessionAttributeHandle } from './session/session-attribute-handle.js';
export type { OtherAttributeName, SessionAttributeName, SessionAttributes } from './session/session-attributes.js';
export type { IndexedSession, SessionIndex } from './session/session-indexes.js';
export { AttributeSerializer, SerializationProblem } from './session/attribute.serializer.js';
export type { UndecodablePolicy } from './session/undecodable-policy.js';
export { JsonAttributeSerializer } from './session/json-attribute.serializer.js';

// in a request
export { BrowserSessions } from './http/browser-sessions.js';
export { RememberMe } from './http/remember-me.js';
export { SessionContext } from './http/session.context.js';
export { Sessions } from './http/sessions.js';
export { SessionInterceptor } from './http/session.interceptor.js';
export type { RequestWithSession } from './http/request-with-session.js';
export { KeepSessionIdle, SessionOutagePolicy } from './http/session-route.decorators.js';

// guards
export { Authenticated, Public, RecentlyAuthenticated } from './guards/authentication.decorators.js';
export { AuthenticatedGuard } from './guards/authenticated.guard.js';
export { AuthenticationRequiredError, type AuthenticationRefusal } from './guards/authentication-required.error.js';

// CSRF
export { csrfTokenOf } from './csrf/csrf-token.js';
export { CsrfToken, SkipCsrf } from './csrf/csrf.decorators.js';
export { CsrfError, type CsrfRefusal } from './csrf/csrf.error.js';
export { CsrfGuard } from './csrf/csrf.guard.js';
export type { CsrfOptions } from './configuration/csrf.options.js';

// tokens and ids
export type { SetCookieAttributes } from './resolvers/cookie-attributes.js';
export { CompositeSessionIdResolver } from './resolvers/composite-session-id.resolver.js';
export { CookieSessionIdResolver } from './resolvers/cookie-session-id.resolver.js';
export { HeaderSessionIdResolver } from './resolvers/header-session-id.resolver.js';
export {
  type SessionClient,
  SessionIdResolver,
  type TokenRefusal,
  type TokenRefusalListener,
} from './resolvers/session-id.resolver.js';
export { RandomSessionIdGenerator, SessionIdGenerator } from './session/session-id.generator.js';
export { SessionToken, sessionTokenOf } from './session/session-token.js';

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
  type SessionEventType,
} from './events/session.events.js';

// security events
export { OnSecurityEvent } from './security-events/on-security-event.decorator.js';
export {
  type RequestFacts,
  SecurityEvent,
  type SecurityEventKind,
  type SecurityFacts,
} from './security-events/security-event.js';

// stores
export { IndexedSessionRepository } from './repository/indexed-session.repository.js';
export { SessionRepository } from './repository/session.repository.js';
export type { TouchOutcome } from './session/session-change.js';
export { MapSessionModule } from './memory/map-session.module.js';
export type { MapSessionModuleOptions } from './memory/map-session.options.js';
export { MapSessionRepository } from './memory/map-session.repository.js';

// errors
export {
  ClientDisconnectedError,
  InvalidSessionOptionsError,
  SessionAttributeError,
  SessionConflictError,
  type SessionBound,
  SessionBoundError,
  SessionCreationRefusedError,
  SessionGoneError,
  SessionIndexError,
  SessionStateError,
  SessionStoreError,
  TooManySessionsError,
} from './errors/session.errors.js';
