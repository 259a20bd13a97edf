import type { IncomingMessage } from 'node:http';
import { type ExecutionContext, ForbiddenException } from '@nestjs/common';
import { markRefusal, refusalBody } from '../errors/refusals.js';
import { SessionStateError } from '../errors/session.errors.js';
import { DetachedSession } from './detached-session.js';
import type { RequestSession } from './request-session.js';
import { RequestSessions } from './request-sessions.js';
import { ResponseCommit } from './response-commit.js';
import { isUpgrade } from './request-session.loader.js';

export interface Call {
  /** `graphql`: also where its context has no request. `operation`: a resolver over a connection, such as a socket. */
  readonly kind: 'http' | 'graphql' | 'operation' | 'message' | 'rpc' | 'other';
  readonly request?: object | undefined;
  /** Undefined when the request is excluded. */
  readonly commit?: ResponseCommit | undefined;
  readonly info?: GraphqlInfo | undefined;
}

interface GraphqlInfo {
  readonly variableValues: object;
  readonly operation: { readonly operation: string };
  readonly parentType: unknown;
  readonly schema: { getSubscriptionType(): unknown };
}

interface GraphqlContext {
  readonly req?: object & GraphqlContext;
  readonly request?: object;
  readonly reply?: GraphqlContext;
  readonly extra?: GraphqlContext;
}

const MESSAGE: Call = { kind: 'message' };
const RPC: Call = { kind: 'rpc' };

/** @throws TypeError or SessionStateError when the GraphQL context has something else than the request */
export function callOf(context: ExecutionContext): Call {
  const kind = context.getType<string>();
  if (kind === 'ws') return MESSAGE;
  if (kind === 'rpc') return RPC;
  if (kind === 'graphql') return callOfResolver(context.getArgs());
  const request = context.getArgByIndex<object | undefined>(0);
  return kind === 'http' ? { kind, request, commit: ResponseCommit.of(request!) } : { kind: 'other', request };
}

function callOfResolver(args: readonly unknown[]): Call {
  // Without arguments of the field, as a resolver of references has it, the context comes second.
  const at = args.length > 3 ? 2 : 1;
  const request = requestIn(args[at]);
  if (!request) return { kind: 'graphql' };
  const incoming = requestOf(request);
  const info = args[at + 1] as GraphqlInfo | undefined;
  if (isUpgrade(incoming)) return { kind: 'operation', request: incoming, info };
  const commit = ResponseCommit.of(incoming);
  if (commit?.isAnswered) throw new SessionStateError(SHARED_CONTEXT);
  return { kind: 'graphql', request, commit, info };
}

function requestIn(context: unknown): object | undefined {
  if (typeof context !== 'object' || context === null) return undefined;
  const { req, request, reply, extra }: GraphqlContext = context;
  // Apollo's driver passes the context of a connection on as if it were a request.
  return req?.extra?.request ?? req ?? extra?.request ?? request ?? reply?.request;
}

/** Whether a call may go on after it was answered: a response that stays open, or a subscription. */
export function mayLast({ kind, info }: Call): boolean {
  return kind === 'http' || kind === 'graphql' || (kind === 'operation' && isSubscription(info));
}

function isSubscription(info: GraphqlInfo | undefined): boolean {
  return info?.operation.operation === 'subscription';
}

/** Undefined when the request is excluded. @throws SessionStateError where there can be no session */
export function sessionOfCall(call: Call): RequestSession | undefined | Promise<RequestSession | undefined> {
  if (call.kind === 'rpc') throw new SessionStateError(NO_REQUEST_IN_RPC);
  if (call.kind === 'operation') return sessionOfOperation(call);
  if (call.kind === 'graphql' && !call.request) throw new SessionStateError(NO_REQUEST_IN_GRAPHQL);
  if (call.kind !== 'message') return call.commit?.session;
  const { current } = DetachedSession;
  if (current === undefined) throw new SessionStateError(NO_SOCKETS);
  return current ?? undefined;
}

const operations = new WeakMap<object, Promise<DetachedSession | undefined>>();

/** Loaded once for each operation and each event of a subscription: the `variableValues` of one are the same object. */
export function sessionOfOperation(call: Call): Promise<DetachedSession | undefined> {
  const execution = call.info?.variableValues ?? call;
  const known = operations.get(execution);
  if (known) return known;
  const loading = loadForOperation(call);
  operations.set(execution, loading);
  return loading;
}

async function loadForOperation({ request, info }: Call): Promise<DetachedSession | undefined> {
  const incoming = request as IncomingMessage;
  const requests = RequestSessions.serving(incoming);
  if (!requests) throw new SessionStateError(FOREIGN_SERVER);
  if (!requests.allowsOriginOf(incoming)) {
    throw markRefusal(new ForbiddenException(refusalBody('cross-origin', { message: FOREIGN_ORIGIN })));
  }
  if (requests.excludes(incoming)) return undefined;
  requests.parts.extension.onOperation?.(incoming);
  const detached = await requests.detached(incoming);
  // The application sent an event of a subscription. It is no access: the user may have left.
  if (isSubscription(info) && info!.parentType !== info!.schema.getSubscriptionType()) detached.keepIdle();
  void detached.touch?.send();
  return detached;
}

/** Of a request that opened a connection: that of the message which is being handled, or else of the handshake. */
export function requestSessionOf(request: IncomingMessage): RequestSession | undefined {
  return ResponseCommit.of(request)?.session ?? DetachedSession.of(request);
}

const remembered = new WeakMap<object, IncomingMessage>();

/** Remembers which request opened a client that does not know it, such as a WebSocket of ws. */
export function rememberRequest(client: object, request: IncomingMessage): void {
  remembered.set(client, request);
}

/** The request of Node.js behind something that a request opened. @throws TypeError when there is none */
export function requestOf(source: object): IncomingMessage {
  // Of a request of Fastify, and of a socket of socket.io.
  const { raw, request } = Object(source) as { readonly raw?: object; readonly request?: object };
  const found = [remembered.get(source), raw, request, source].find(isRequest);
  if (found) return found;
  throw new TypeError(
    'Not a request: pass the request of Node.js, Express or Fastify, a socket of socket.io, or a client of a gateway',
  );
}

function isRequest(value: unknown): value is IncomingMessage {
  return typeof value === 'object' && value !== null && 'headers' in value && 'socket' in value;
}

const NO_SOCKETS =
  'There is no session in this gateway: import SessionWebSocketModule.forRoot() of @nest-session/websockets';

const NO_REQUEST_IN_RPC =
  'There is no session here, because a message of a microservice has no request: send the session id along, and load ' +
  'the session by SessionRepository.findById()';

const NO_REQUEST_IN_GRAPHQL =
  'There is no session here, because the GraphQL context has no request: return it in the option `context` of ' +
  'GraphQLModule.forRoot(), as in `context: ({ req }) => ({ req })`';

const SHARED_CONTEXT =
  'The GraphQL context has a request that was answered already, perhaps of another user: requests share one object. Set ' +
  'the option `context` of GraphQLModule.forRoot() to a function that returns a new object each time, as in `() => ({ ... })`';

const FOREIGN_ORIGIN =
  'This page may not subscribe: its origin is not the host, and not listed in SessionWebSocketModule.forRoot({ origins })';

const FOREIGN_SERVER =
  'There is no session here: this connection was not opened through the HTTP server of the application';
