// `@nest-session/core/store`: what authors of stores need besides `@nest-session/core`.

// the port
export type { SessionRepositoryOptions } from './repository/session.repository.js';
export type { SessionRecord, StoredText } from './session/session-record.js';
export { toSessionInfo } from './session/session-info.js';
export type {
  AttributeChanges,
  CreateReply,
  CreateSession,
  DeleteReply,
  DeleteSession,
  IndexChanges,
  SessionChange,
  SessionLimit,
  TouchReply,
  TouchSession,
  UpdateReply,
  UpdateSession,
  WriteReply,
} from './session/session-change.js';
export { exceededBound } from './session/session-bounds.js';
export { isKept, type KeptAttributes } from './session/kept-attributes.js';

// events
export { SessionEventDispatcher } from './events/session-event.dispatcher.js';
export { SessionSnapshot } from './session/session-snapshot.js';

// the module of a store
export { SESSION_OPTIONS } from './configuration/session.module-definition.js';
export type { ResolvedSessionOptions } from './configuration/session.options.js';
export { PollingLoop } from './background/polling.loop.js';
