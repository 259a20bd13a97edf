import type { ExecutionContext } from '@nestjs/common';
import { SessionStateError } from '../errors/session.errors.js';
import { DetachedSession } from './detached-session.js';
import { GraphqlOperation } from './graphql-operation.js';
import type { RequestSession } from './request-session.js';
import { sessionOfOperation } from './session-of-operation.js';
import { isUpgrade } from './request-of.js';
import { ResponseCommit } from './response-commit.js';

/** The session of the HTTP request that a call serves; undefined when there is none, or it is excluded. */
export function httpSessionOfCall(context: ExecutionContext): RequestSession | undefined {
  const type = context.getType<string>();
  if (type === 'http') return ResponseCommit.of(context.switchToHttp().getRequest())?.session;
  if (type !== 'graphql') return undefined;
  const operation = GraphqlOperation.find(context);
  return !operation || isUpgrade(operation.incoming) ? undefined : ResponseCommit.of(operation.incoming)?.session;
}

/**
 * The session of the request or message that a call serves, whether or not one was loaded; undefined when it is
 * excluded.
 * @throws SessionStateError where there can be no session
 */
export function requestSessionOfCall(
  context: ExecutionContext,
): RequestSession | undefined | Promise<RequestSession | undefined> {
  const type = context.getType<string>();
  if (type === 'rpc') throw new SessionStateError(NO_REQUEST_IN_RPC);
  if (type === 'ws') return currentMessage() ?? undefined;
  if (type === 'graphql') {
    const operation = GraphqlOperation.of(context);
    if (isUpgrade(operation.incoming)) return sessionOfOperation(operation);
  }
  return httpSessionOfCall(context);
}

/**
 * The session of the current message; null when its connection is excluded. @throws SessionStateError outside of
 * messages
 */
export function currentMessage(): DetachedSession | null {
  const { current } = DetachedSession;
  if (current === undefined) throw new SessionStateError(NO_SOCKETS);
  return current;
}

const NO_SOCKETS =
  'There is no session in this gateway: import SessionWebSocketModule.forRoot() of @nest-session/websockets';

export const NO_REQUEST_IN_RPC =
  'There is no session here, because a message of a microservice has no request: send the session id along, and load ' +
  'the session by SessionRepository.findById()';
