// `@nest-session/core/transport`: binds requests to sessions, for the other packages of @nest-session. Not for
// applications: it changes with every version.
export { DetachedSession } from './http/detached-session.js';
export { holderOf } from './http/holder-of.js';
export { type Handler, putFilterLast, putFirst } from './http/put-first.js';
export { rememberRequest } from './http/request-of.js';
export type { FoundSession, RequestSession } from './http/request-session.js';
export { RequestSessions } from './http/request-sessions.js';
export type { ResponseCommit } from './http/response-commit.js';
export { SessionExchange } from './http/session-exchange.js';
export { SessionExtension } from './http/session-extension.js';
export type { SessionHolder } from './http/session-holder.js';
export { lifetimeOf } from './http/session-lifetime.js';
export { KEEP_SESSION_IDLE } from './http/session-route.decorators.js';
export { SessionScope } from './http/session.scope.js';
export type { ForeignSession, SessionTakeover } from './http/session-takeover.js';
export type { UpgradeOrigins } from './http/upgrade-origins.js';
export { type ForeignSessionData, ForeignSessions } from './repository/foreign-sessions.js';
export { cookieAttributes } from './resolvers/cookie-attributes.js';
export { cookieValues } from './resolvers/cookie-values.js';
export { appendHeader } from './resolvers/response-headers.js';
export { COOKIE_MAX_AGE_ATTRIBUTE, INITIALIZED_ATTRIBUTE } from './session/own-attributes.js';
