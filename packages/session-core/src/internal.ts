// `@nest-session/core/internal`: what the packages of @nest-session share. Not for applications, and outside of
// semantic versioning: it changes with every version.
export type { MaxSessionsOptions } from './configuration/session.options.js';
export { type BoundMethod, discoverMethods } from './discovery/discover-methods.js';
export { HandlerMarks, markMethod } from './discovery/handler-marks.js';
export { HandlerQueue } from './events/handler.queue.js';
export { isFromOtherOrigin, SAFE_METHODS } from './csrf/csrf.guard.js';
export {
  assertLimit,
  type ConsumerState,
  type DeadLetter,
  type DeadLetterFilter,
  type EventGroupInfo,
  type EventGroupsOf,
  type RemoveGroupReply,
  type ReplayReply,
  SESSION_EVENT_GROUPS,
} from './events/event-groups.js';
export { DeviceNotBoundError } from './errors/session.errors.js';
export { markRefusal, refusal, refusalBody } from './errors/refusals.js';
export {
  backOffAfter,
  EventHandlingError,
  type HandledKind,
  type HandledName,
  NamedEventDispatcher,
  reasonOf,
  RETRIES,
  SessionEventHandlingError,
} from './events/handler.dispatcher.js';
export type { SessionEventClass } from './events/on-session-event.decorator.js';
export { sessionEventId, type SessionEventInit, type SessionEventType } from './events/session.events.js';
export { DetachedSession } from './http/detached-session.js';
export { rememberRequest, requestOf, requestSessionOf } from './http/call.js';
export { type CloseReason, type OpenConnection, OpenConnections } from './http/open-connections.js';
export { type Handler, putFilterLast, putFirst } from './http/handler-metadata.js';
export type { RequestSession } from './http/request-session.js';
export { RequestSessions } from './http/request-sessions.js';
export { SessionExtension } from './http/session-extension.js';
export { cookieLifetimeOf } from './http/session-touch.js';
export { KEEP_SESSION_IDLE } from './http/session-route.decorators.js';
export type { ForeignSession, NamedForeignSession, SessionTakeover } from './http/session-takeover.js';
export { assignedAt } from './logging/assigned-at.js';
export { FailureReasons } from './logging/failure-reasons.js';
export { OneLineLogger } from './logging/one-line.logger.js';
export { shownError, shownStack, shownText, textOf } from './logging/shown-error.js';
export { WarnOnce } from './logging/warn-once.js';
export { MAP_SESSION_CLOCK, type MapSessionModuleOptions } from './memory/map-session.module.js';
export type { Clock, MapSessionRepositoryOptions } from './memory/map-session.repository.js';
export { parseDuration } from './option-reading/duration.js';
export { isGuessableKey } from './option-reading/guessable-key.js';
export {
  assertConfiguredOnce,
  assertOneStore,
  explainInjection,
  givenOptions,
  injectDependencies,
  ofSessionModule,
} from './option-reading/injected-dependencies.js';
export { OptionReader } from './option-reading/option.reader.js';
export { toOrigin } from './option-reading/to-origin.js';
export { type ForeignSessionData, ForeignSessions } from './repository/foreign-sessions.js';
export { listAsGiven } from './repository/indexed-session.repository.js';
export {
  findPartly,
  forgetSignIn,
  type InspectedSession,
  inspectSessions,
  lookBy,
  marksOf,
  storeCallsOf,
  type StoreMarks,
  type StorePrimitives,
  storePrimitivesOf,
  writerOf,
} from './repository/session.repository.js';
export {
  PROVIDER_INDEXES,
  providerHash,
  type ProviderLogin,
  providerLoginIn,
  SID_INDEX,
  SUB_INDEX,
} from './provider/provider-login.js';
export { cookieValues } from './resolvers/cookie-session-id.resolver.js';
export {
  attributesForRequest,
  LONGEST_COOKIE,
  type ResolvedCookieOptions,
  type SetCookieAttributes,
} from './resolvers/cookie.options.js';
export { fastifyRequestOf } from './resolvers/proxied-request.js';
export { appendHeader } from './resolvers/response-headers.js';
export { BesideTheLog } from './security-events/on-security-event.decorator.js';
export { SecurityEvents } from './security-events/security-events.js';
export {
  assertPrincipalName,
  COOKIE_MAX_AGE_ATTRIBUTE,
  INITIALIZED_ATTRIBUTE,
  isIdentityAttribute,
  DEVICE_ATTRIBUTE,
  isOwnAttribute,
  isWellFormed,
  PRINCIPAL_ATTRIBUTE,
  PROVIDER_ATTRIBUTE,
} from './session/attribute-names.js';
export { isSerializer } from './session/attribute.serializer.js';
export { ApplicationSerializer, markSafe, withoutProto } from './session/json-attribute.serializer.js';
export { type ContentBounds, FORWARDING_TIME, LONGEST_REQUEST, type TouchOutcome } from './session/session-change.js';
export {
  generateSessionKey,
  isWellFormedIdOrToken,
  RandomSessionTokenGenerator,
  SessionIds,
} from './session/session-token.js';
export { indexTerm, SessionIndexes } from './session/session-indexes.js';
export type { UnreadText } from './session/session-record.js';
export { absoluteTimeoutOf, beganAt } from './session/session-timeouts.js';
export { SafePromise } from './session/safe-promise.js';
export { type SaveOutcome, SHOWN_SESSION } from './session/session.js';
export type { SessionRule } from './session/session-state.js';
export { TrackedSession } from './session/tracked-session.js';
export { TurnQueue } from './session/turn.queue.js';
export { deviceIn } from './device/device-binding.js';
export { traced } from './telemetry/channels.js';
export {
  DEADLINE_READER,
  MEASURED_DEADLINES,
  type MeasuredNamespace,
  type DeadlineReading,
  type GroupReading,
  type HealthLook,
  SESSION_HEALTH,
  SESSION_READER,
  SESSION_TELEMETRY,
  type SessionHealthReport,
  type SessionReader,
  type SessionReading,
  type SessionTelemetry,
  type StoreReader,
  type WaitingReading,
} from './telemetry/session-telemetry.js';
export { startLast } from './events/session-event.module.js';
export { logger } from './logging/session.logger.js';
export { assertObject, assertString } from './option-reading/assert-argument.js';
export { SecurityEventDispatcher } from './security-events/security-event.dispatcher.js';
export { readData, writeData } from './events/event-data.js';
