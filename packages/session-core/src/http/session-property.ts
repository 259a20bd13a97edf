import type { IncomingMessage } from 'node:http';
import { SessionStateError } from '../errors/session.errors.js';
import { assignedAt } from '../logging/assigned-at.js';
import { logger } from '../logging/session.logger.js';
import type { Session } from '../session/session.js';
import { ResponseCommit, type ResponseCommitParts } from './response-commit.js';

/**
 * The type of a request with a session of this library: `@Req() request: RequestWithSession<Request>`, whatever other
 * packages declare as the type of its `session`. An excluded request has none.
 */
export type RequestWithSession<R extends object = IncomingMessage> = Omit<R, 'session'> & { readonly session: Session };

/**
 * `request.session`. Not enumerable, so that copying or printing a request does not use its session. All requests share
 * the accessors, because V8 cannot optimize requests that each have their own.
 */
export const sessionProperty = {
  configurable: true,
  get(this: IncomingMessage): Session | undefined {
    return ResponseCommit.of(this)?.session.shown;
  },
  set: assignSession,
};

const told = new WeakSet<ResponseCommitParts>();

/**
 * Another library assigns its own session: that is then `request.session` of this request, and everything else of this
 * library keeps its own.
 * @throws SessionStateError for a sign-out as in express-session, because the user would stay signed in
 */
function assignSession(this: IncomingMessage, value: unknown): void {
  const commit = ResponseCommit.of(this);
  const existing = commit?.session.existing;
  const isSignOut = (value === null || value === undefined) && !commit?.session.hasEnded && existing?.principalName;
  if (isSignOut) throw new SessionStateError(UNSET);
  Object.defineProperty(this, 'session', { configurable: true, writable: true, value });
  if (!commit || told.has(commit.parts)) return;
  told.add(commit.parts);
  logger.warn(`request.session was assigned at ${assignedAt(assignSession)}: ${ASSIGNED}`);
}

const UNSET =
  'request.session cannot be unset, because its user would stay signed in: call session.signOut(), or ' +
  'session.invalidate() to end the session';

const ASSIGNED =
  'that is what request.session is in such a request. Take the session of this library by @Session() of ' +
  '@nest-session/core or from SessionContext, and do not read or end it by request.session';
