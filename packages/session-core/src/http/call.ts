import type { IncomingMessage } from 'node:http';
import { type ExecutionContext, ForbiddenException } from '@nestjs/common';
import { SessionStateError } from '../errors/session.errors.js';
import { DetachedSession } from './detached-session.js';
import type { RequestSession } from './request-session.js';
import { RequestSessions } from './request-sessions.js';
import { ResponseCommit } from './response-commit.js';

/** What a guard, an interceptor or a decorated parameter is called for. */
export interface Call {
  /**
   * - `http`: a handler of an HTTP request;
   * - `graphql`: a resolver in an HTTP request, or where the GraphQL context has no request;
   * - `operation`: a resolver in an operation over a connection, such as a subscription;
   * - `message`: a message handler of a gateway;
   * - `rpc`: a message handler of a microservice;
   * - `other`: whatever other packages call.
   */
  readonly kind: 'http' | 'graphql' | 'operation' | 'message' | 'rpc' | 'other';
  /** The request as the platform passes it on; of an operation, the one that opened its connection. */
  readonly request?: object | undefined;
  /** What saves the session of an HTTP request; undefined when the request is excluded. */
  readonly commit?: ResponseCommit | undefined;
  /** What GraphQL tells a resolver of its operation. */
  readonly info?: GraphqlInfo | undefined;
}

/** As far as it is used here. */
interface GraphqlInfo {
  readonly variableValues: object;
  readonly operation: { readonly operation: string };
  readonly parentType: unknown;
  readonly schema: { getSubscriptionType(): unknown };
}

/** The objects in which drivers, and the option `context` of applications, pass a request on. */
interface GraphqlContext {
  readonly req?: object & GraphqlContext;
  readonly request?: object;
  readonly reply?: GraphqlContext;
  readonly extra?: GraphqlContext;
}

const MESSAGE: Call = { kind: 'message' };
const RPC: Call = { kind: 'rpc' };

/** @throws TypeError when the GraphQL context has something else in the place of a request */
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
  return { kind: 'graphql', request, commit: ResponseCommit.of(incoming), info };
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

/**
 * The session of the request or message that a call serves, whether or not one was loaded; undefined when it is
 * excluded.
 * @throws SessionStateError where there can be no session; ForbiddenException when a page of a foreign origin opened
 *   the connection of an operation
 */
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

/**
 * The session of an operation: loaded once for each operation, and once for each event of a subscription, if any of its
 * resolvers asks for it. Rejects as `sessionOfCall()` throws.
 */
export function sessionOfOperation(call: Call): Promise<DetachedSession | undefined> {
  // The same object for all resolvers of one execution, and another one for each event of a subscription.
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
  if (!requests.allowsOriginOf(incoming)) throw new ForbiddenException(FOREIGN_ORIGIN);
  if (requests.excludes(incoming)) return undefined;
  requests.parts.extension.onOperation?.(incoming);
  const detached = await requests.detached(incoming);
  // The application sent an event of a subscription. It is no access: the user may have left.
  if (isSubscription(info) && info!.parentType !== info!.schema.getSubscriptionType()) detached.keepIdle();
  void detached.touch?.send();
  return detached;
}

/**
 * The session of a request of Node.js. Of a request that opened a connection to a gateway, it is the session of the
 * message that is being handled, or else of the handshake. Undefined when there is none, or the request is excluded.
 */
export function requestSessionOf(request: IncomingMessage): RequestSession | undefined {
  return ResponseCommit.of(request)?.session ?? DetachedSession.of(request);
}

/** Something that was opened by a request: the request itself, as a platform wraps it, or a client of a gateway. */
interface Opened {
  /** Of a request of Fastify. */
  readonly raw?: object;
  /** Of a socket of socket.io. */
  readonly request?: object;
}

const remembered = new WeakMap<object, IncomingMessage>();

/** Remembers which request opened a client that does not know it, such as a WebSocket of ws. */
export function rememberRequest(client: object, request: IncomingMessage): void {
  remembered.set(client, request);
}

/** The request of Node.js behind something that a request opened. @throws TypeError when there is none */
export function requestOf(source: object): IncomingMessage {
  const { raw, request } = Object(source) as Opened;
  const found = [remembered.get(source), raw, request, source].find(isRequest);
  if (found) return found;
  throw new TypeError(
    'Not a request: pass the request of Node.js, Express or Fastify, a socket of socket.io, or a client of a gateway',
  );
}

function isRequest(value: unknown): value is IncomingMessage {
  return typeof value === 'object' && value !== null && 'headers' in value && 'socket' in value;
}

/** Whether a request asked to turn its connection into another one, such as a WebSocket. */
export function isUpgrade(request: IncomingMessage): boolean {
  return (request as { readonly upgrade?: boolean }).upgrade === true;
}

const NO_SOCKETS =
  'There is no session in this gateway: import SessionWebSocketModule.forRoot() of @nest-session/websockets';

const NO_REQUEST_IN_RPC =
  'There is no session here, because a message of a microservice has no request: send the session id along, and load ' +
  'the session by SessionRepository.findById()';

const NO_REQUEST_IN_GRAPHQL =
  'There is no session here, because the GraphQL context has no request: return it in the option `context` of ' +
  'GraphQLModule.forRoot(), as in `context: ({ req }) => ({ req })`';

const FOREIGN_ORIGIN =
  'This page may not subscribe: its origin is not the host, and not listed in SessionWebSocketModule.forRoot({ origins })';

const FOREIGN_SERVER =
  'There is no session here: this connection was not opened through the HTTP server of the application';
