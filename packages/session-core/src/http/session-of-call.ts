import type { ExecutionContext } from '@nestjs/common';
import { SessionStateError } from '../errors/session.errors.js';
import type { Session } from '../session/session.js';
import { DetachedSession } from './detached-session.js';
import { GraphqlOperation } from './graphql-operation.js';
import type { RequestSession } from './request-session.js';
import { sessionOfOperation } from './session-of-operation.js';
import { isUpgrade } from './request-of.js';
import { SessionExchange } from './session-exchange.js';
import { SessionMiddleware } from './session.middleware.js';

interface HttpRequest {
  readonly session?: Session;
}

/**
 * What `read` makes of the session of a call: a handler of HTTP, a resolver of GraphQL or a message handler of a gateway.
 * Of undefined, when its request is excluded.
 * @throws SessionStateError where there can be no session
 */
export function readSessionOfCall<T>(
  context: ExecutionContext,
  read: (session: Session | undefined) => T,
): T | Promise<T> {
  const type = context.getType<string>();
  if (type === 'graphql') return readOfOperation(GraphqlOperation.of(context), read);
  if (type === 'ws') return read(ofMessage());
  const request = type === 'rpc' ? undefined : context.switchToHttp().getRequest<HttpRequest | undefined>();
  if (typeof request !== 'object') throw new SessionStateError(type === 'rpc' ? NO_REQUEST_IN_RPC : NO_REQUEST);
  return read(ofRequest(request));
}

/** The exchange of the HTTP request that a call serves; undefined when there is none, or it is excluded. */
export function exchangeOfCall(context: ExecutionContext): SessionExchange | undefined {
  const type = context.getType<string>();
  if (type === 'http') return SessionExchange.of(context.switchToHttp().getRequest());
  if (type !== 'graphql') return undefined;
  const operation = GraphqlOperation.find(context);
  return !operation || isUpgrade(operation.incoming) ? undefined : SessionExchange.of(operation.incoming);
}

/**
 * What a call has of the session of its request, whether or not one was loaded; undefined when its request is excluded.
 * @throws SessionStateError where there can be no session
 */
export function requestSessionOfCall(
  context: ExecutionContext,
): RequestSession | undefined | Promise<RequestSession | undefined> {
  const type = context.getType<string>();
  if (type === 'rpc') throw new SessionStateError(NO_REQUEST_IN_RPC);
  if (type === 'ws') return currentMessage()?.session;
  if (type === 'graphql') {
    const operation = GraphqlOperation.of(context);
    if (isUpgrade(operation.incoming)) return sessionOfOperation(operation).then((detached) => detached?.session);
  }
  return exchangeOfCall(context)?.session;
}

function readOfOperation<T>(operation: GraphqlOperation, read: (session: Session | undefined) => T): T | Promise<T> {
  if (!isUpgrade(operation.incoming)) return read(ofRequest(operation.request));
  return sessionOfOperation(operation).then((detached) => read(detached?.shown));
}

function ofRequest({ session }: HttpRequest): Session | undefined {
  if (session === undefined && !SessionMiddleware.isInstalled) throw new SessionStateError(SESSION_MODULE_MISSING);
  return session;
}

function ofMessage(): Session | undefined {
  return currentMessage()?.shown;
}

function currentMessage(): DetachedSession | null {
  const { current } = DetachedSession;
  if (current === undefined) throw new SessionStateError(NO_SOCKETS);
  return current;
}

const SESSION_MODULE_MISSING =
  'There are no sessions in this application: add SessionModule.forRoot() to the imports of the root module';

const NO_SOCKETS =
  'There is no session in this gateway: import SessionWebSocketModule.forRoot() of @nest-session/websockets';

const NO_REQUEST_IN_RPC =
  'There is no session here, because a message of a microservice has no request: send the session id along, and load ' +
  'the session by SessionRepository.findById()';

const NO_REQUEST = 'There is no session here, because this handler has no request';
