import { AsyncResource } from 'node:async_hooks';
import type { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { refusalBody, WarnOnce } from '@nest-session/core/internal';
import { JSON_HEADERS, type Refusal, refusalAfter, tellOfLateRefusal } from '../connections/refusals.js';

export interface IoSocket extends IoClient {
  readonly handshake: { readonly auth: IoAuth };
  /** Whether socket.io restored the earlier state of the client. */
  readonly recovered?: boolean;
  /** The id that socket.io sends the client, with which it can ask for its state again. */
  pid?: string;
  once(event: 'disconnect', listener: () => void): unknown;
  disconnect(close: boolean): unknown;
  /** Called when the socket has left its namespace, or was refused. socket.io does not document this method. */
  _cleanup?(): void;
}

export type IoAuth = Readonly<Record<string, unknown>>;

interface IoConnection extends EventEmitter {
  readonly transport: { readonly name: string };
  /** What waits for the client to poll. engine.io does not document this property. */
  readonly writeBuffer?: { readonly type: string }[];
}

/** A connection. It may carry one socket for each namespace. */
export interface IoClient {
  readonly request: IncomingMessage;
  readonly conn: IoConnection;
}

export interface IoNamespace {
  /** Connects a client. socket.io does not document this method. */
  _add?(client: IoClient, auth: IoAuth, connected: unknown): unknown;
  /** What `use()` has added. socket.io does not document this property. */
  readonly _fns?: IoMiddleware[];
}

type IoMiddleware = (socket: IoSocket, next: (error?: Error) => void) => void;
type RunMiddleware = (request: IncomingMessage, response: EngineResponse, done: () => void) => void;

export type EngineResponse = Pick<ServerResponse, 'writeHead' | 'end'>;
type AllowRequest = (request: IncomingMessage, decide: (problem: string | null, isAllowed: boolean) => void) => void;

export type LaterConnection = IoClient['conn'] & Pick<IoClient, 'request'>;

type EngineRequest = IncomingMessage & { readonly _query?: { readonly sid?: string } };

type VerifyEngine = (
  request: EngineRequest,
  isUpgrade: boolean,
  decide: (problem?: number, context?: object) => void,
) => void;

export interface IoEngine {
  readonly clients?: Readonly<Record<string, LaterConnection>>;
  /** Decides about each of its HTTP requests. socket.io does not document this method. */
  verify?: VerifyEngine;
  readonly opts?: { allowRequest?: AllowRequest | undefined; readonly cors?: unknown };
  /** What `use()` has added. socket.io does not document these two. */
  readonly middlewares?: readonly unknown[];
  _applyMiddlewares?: RunMiddleware;
}

/** A server of socket.io, or a namespace of one. */
export interface IoServer extends IoNamespace {
  readonly engine?: IoEngine;
  readonly server?: IoServer;
  readonly opts?: { readonly connectionStateRecovery?: { skipMiddlewares?: boolean } };
  path?(): string;
  of?(name: string): IoNamespace;
  on(event: 'new_namespace', listener: (namespace: IoNamespace) => void): unknown;
  use(middleware: IoMiddleware): unknown;
}

type Verify = (
  info: { readonly req: IncomingMessage },
  decide: (isAllowed: boolean, status?: number, body?: string, headers?: object) => void,
) => unknown;

export interface WsServer {
  readonly options?: { verifyClient?: Verify | null | undefined };
  handleUpgrade(...args: never[]): void;
}

export interface WsSocket {
  close(code: number, reason: string): void;
}

const log = new WarnOnce();

const LEFT_UNTOLD =
  'With this version of socket.io, what a refused client holds stays until its connection closes: install another version';

export function isIoServer(server: unknown): server is IoServer {
  const { use, engine, server: parent } = server as Partial<IoServer>;
  return typeof use === 'function' && (engine ?? parent) !== undefined;
}

export function isWsServer(server: unknown): server is WsServer {
  return typeof (server as Partial<WsServer>).handleUpgrade === 'function';
}

/** Calls `left` when a socket has left its namespace, or when a later middleware has refused it, which is no event. */
export function whenLeft(socket: IoSocket, left: () => void): void {
  socket.once('disconnect', left);
  const { _cleanup: cleanup } = socket;
  if (!cleanup) return log.warn('_cleanup', LEFT_UNTOLD);
  socket._cleanup = () => {
    left();
    cleanup.call(socket);
  };
}

/** Node.js warns of more than ten listeners, and a client may use as many namespaces: this one comes on top. */
export function onClose({ conn }: IoClient, listener: () => void): void {
  allowListeners(conn, 1);
  conn.once('close', listener);
}

export function offClose({ conn }: IoClient, listener: () => void): void {
  if (!conn.listeners('close').includes(listener)) return;
  conn.off('close', listener);
  allowListeners(conn, -1);
}

export function dropMessages({ writeBuffer }: IoConnection): void {
  const packets = writeBuffer?.splice(0) ?? [];
  writeBuffer?.push(...packets.filter(({ type }) => type !== 'message'));
}

function allowListeners(conn: IoClient['conn'], more: number): void {
  const most = conn.getMaxListeners();
  // 0 means no limit.
  if (most > 0) conn.setMaxListeners(most + more);
}

function warnOfOrder(method: string): void {
  log.warn(
    method,
    `With this version of socket.io, middleware that an adapter adds by ${method} runs before the session is loaded: ` +
      'add it in afterInit() of the gateway',
  );
}

/** Adds a middleware before those that the application's adapter has added. */
export function useFirst(server: IoServer, middleware: IoMiddleware): void {
  server.use(middleware);
  // A server adds it to its namespace `/`.
  const { _fns: all } = server.of?.('/') ?? server;
  if (all?.at(-1) === middleware) all.unshift(...all.splice(-1));
  else warnOfOrder('server.use()');
}

/** Calls `prepare` before the middleware of an engine, for each of its HTTP requests, where the application has any. */
export function beforeMiddleware(
  engine: IoEngine,
  prepare: (request: IncomingMessage, response: EngineResponse, run: () => void, done: () => void) => void,
): void {
  const { _applyMiddlewares: apply, middlewares } = engine;
  // Before socket.io 4.6, an engine has no middleware.
  if (!('use' in engine)) return;
  if (!apply || !middlewares) return warnOfOrder('engine.use()');
  // socket.io itself adds the first one.
  const own = engine.opts?.cors ? 1 : 0;
  engine._applyMiddlewares = (request, response, done) => {
    if (middlewares.length <= own) return apply.call(engine, request, response, done);
    // The timers of the connection would keep the session that the middleware runs in.
    const outside = AsyncResource.bind(done);
    return prepare(request, response, () => apply.call(engine, request, response, outside), outside);
  };
}

/**
 * Adds a check before a socket.io handshake. If it passes, the application's own check runs. The body of a refusal is
 * that of engine.io, whose `message` has to be the reason.
 */
export function allowRequests({ opts }: IoEngine, allows: (request: IncomingMessage) => boolean): void {
  // The middleware of each namespace refuses them.
  if (!opts) return tellOfLateRefusal('socket.io');
  const { allowRequest } = opts;
  opts.allowRequest = (request, decide) => {
    if (!allows(request)) decide(refusalBody('cross-origin').reason, false);
    else if (allowRequest) allowRequest(request, decide);
    else decide(null, true);
  };
}

/**
 * Adds a check of the requests that go on with a connection: polls, and the upgrade to a WebSocket. The `sid` that
 * names it stands in their URLs, so it is no secret.
 */
export function allowLaterRequests(
  engine: IoEngine,
  allows: (request: IncomingMessage, connection: LaterConnection) => boolean,
): void {
  const { verify } = engine;
  if (!verify) return warnOfSid();
  engine.verify = (request, isUpgrade, decide) =>
    verify.call(engine, request, isUpgrade, (...problem) => {
      const { sid } = request._query ?? {};
      const connection = problem[0] === undefined && sid ? engine.clients?.[sid] : undefined;
      if (!connection || allows(request, connection)) decide(...problem);
      else decide(FORBIDDEN, { message: refusalBody('foreign-connection').reason });
    });
}

// Of the protocol of engine.io.
const FORBIDDEN = 4;

function warnOfSid(): void {
  log.warn('sid', 'With this version of socket.io, the `sid` of a connection is enough to poll it');
}

/** Adds a check to ws handshakes, and what the application's own check needs, which runs after that. */
export function verifyClients(
  { options }: WsServer,
  allows: (request: IncomingMessage) => boolean,
  prepare: (request: IncomingMessage, verify: () => void) => Promise<void>,
): void {
  // `GatewaySockets.connect()` tells of the clients.
  if (!options) return;
  const { verifyClient } = options;
  // If the function has two parameters, ws waits until it calls the second one.
  options.verifyClient = (info, decide) => {
    const refuse = (refusal: Refusal) => decide(false, refusal.statusCode, JSON.stringify(refusal), JSON_HEADERS);
    if (!allows(info.req)) return refuse(refusalBody('cross-origin'));
    const outside = AsyncResource.bind(decide);
    const verify = (): void => {
      if (!verifyClient) outside(true);
      else if (verifyClient.length === 2) verifyClient(info, outside);
      else if (verifyClient(info, outside) === true) outside(true);
      else outside(false, 401);
    };
    return void prepare(info.req, verify).catch((error: unknown) => refuse(refusalAfter(error)));
  };
}
