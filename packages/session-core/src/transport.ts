// `@nest-session/core/transport`: how a request and its session are bound, for the packages of @nest-session that bind
// them elsewhere. Not for applications: it changes with every version.
export type { FoundSession, RequestSession } from './http/request-session.js';
export type { ResponseCommit } from './http/response-commit.js';
export { SessionExchange } from './http/session-exchange.js';
export { SessionScope } from './http/session.scope.js';
