// `@nest-session/core`: what applications need. Authors of stores also import `@nest-session/core/store`.

// the module
export { SessionModule } from './session.module.js';
export type { SessionOptionsFactory } from './configuration/session.module-definition.js';
export type { SessionModuleOptions } from './configuration/session.options.js';
export type { CookieOptions } from './resolvers/cookie.options.js';
export type { Duration } from './option-reading/duration.js';

// the session
export { Session, SessionAttribute, SessionId } from './http/session.decorators.js';
export {
  PRINCIPAL_NAME_INDEX_NAME,
  type ProviderClaims,
  type ReadonlySession,
  type SessionAttributes,
} from './session/session.js';
export type { SessionInfo } from './session/session-info.js';
export type { SessionIndex } from './session/session-indexes.js';
export { AttributeSerializer, SerializationProblem } from './session/attribute.serializer.js';
export { JsonAttributeSerializer } from './session/json-attribute.serializer.js';

// in a request
export { BrowserSessions } from './http/browser-sessions.js';
export { RememberMe } from './http/remember-me.js';
export { SessionContext } from './http/session.scope.js';
export { Sessions } from './http/sessions.js';
export { SessionInterceptor } from './http/session.interceptor.js';
export type { RequestWithSession } from './http/session-property.js';
export { KeepSessionIdle, SessionOutagePolicy } from './http/session-route.decorators.js';

// guards
export { Authenticated, AuthenticatedGuard, Public, RecentlyAuthenticated } from './guards/authenticated.guard.js';
export { DeviceBound } from './device/device-bound.guard.js';

// CSRF
export { csrfTokenOf } from './csrf/csrf-token.js';
export { CsrfError, CsrfGuard, CsrfToken, SkipCsrf } from './csrf/csrf.guard.js';

// tokens and ids
export { CompositeSessionIdResolver } from './resolvers/composite-session-id.resolver.js';
export { CookieSessionIdResolver } from './resolvers/cookie-session-id.resolver.js';
export { HeaderSessionIdResolver } from './resolvers/header-session-id.resolver.js';
export { type SessionClient, SessionIdResolver, type TokenRefusalListener } from './resolvers/session-id.resolver.js';
export { SessionToken, SessionTokenGenerator, sessionTokenOf } from './session/session-token.js';

// events
export { OnSessionEvent, OnSessionEventGap, type SessionEventGap } from './events/on-session-event.decorator.js';
export {
  SessionBoundEvent,
  SessionCreatedEvent,
  SessionDeletedEvent,
  SessionDestroyedEvent,
  SessionEvent,
  SessionExpiredEvent,
  SessionIdChangedEvent,
  SessionSignedInEvent,
} from './events/session.events.js';

// security events
export { OnSecurityEvent } from './security-events/on-security-event.decorator.js';
export { SecurityEvent } from './security-events/security-events.js';

// stores
export { IndexedSessionRepository } from './repository/indexed-session.repository.js';
export { SessionRepository } from './repository/session.repository.js';
export { MapSessionModule } from './memory/map-session.module.js';
export { MapSessionRepository } from './memory/map-session.repository.js';

// errors
export { type RefusalBody, type RefusalReason, REFUSALS } from './errors/refusals.js';
export {
  AuthenticationRequiredError,
  ClientDisconnectedError,
  InvalidSessionOptionsError,
  SessionAttributeError,
  SessionBoundError,
  SessionConflictError,
  SessionCreationRefusedError,
  SessionGoneError,
  SessionIndexError,
  SessionStateError,
  SessionStoreError,
  TooManySessionsError,
} from './errors/session.errors.js';
