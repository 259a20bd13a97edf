// `@nest-session/core/transport`: binds requests to sessions, for the other packages of @nest-session. Not for
// applications: it changes with every version.
export type { FoundSession, RequestSession } from './http/request-session.js';
export type { ResponseCommit } from './http/response-commit.js';
export { SessionExchange } from './http/session-exchange.js';
export { SessionScope } from './http/session.scope.js';
