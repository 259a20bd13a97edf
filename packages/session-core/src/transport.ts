// `@nest-session/core/transport`: binds requests to sessions, for the other packages of @nest-session. Not for
// applications: it changes with every version.
export type { FoundSession, RequestSession } from './http/request-session.js';
export type { ResponseCommit } from './http/response-commit.js';
export { SessionExchange } from './http/session-exchange.js';
export { SessionExtension } from './http/session-extension.js';
export { COOKIE_MAX_AGE_ATTRIBUTE } from './http/session-lifetime.js';
export { SessionScope } from './http/session.scope.js';
export type { ForeignSession, SessionTakeover } from './http/session-takeover.js';
export { type ForeignSessionData, ForeignSessions } from './repository/foreign-sessions.js';
export { type SetCookieAttributes, cookieAttributes } from './resolvers/cookie-attributes.js';
export { appendHeader } from './resolvers/response-headers.js';
