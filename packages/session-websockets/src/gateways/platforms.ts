import type { IncomingMessage } from 'node:http';

/** The parts of socket.io that are used here. */
export interface IoSocket extends IoClient {
  readonly handshake: { readonly auth: IoAuth };
  /** Whether it was given back what its client had before. */
  readonly recovered?: boolean;
  /** What the client is told, so that it can ask for that. */
  pid?: string;
  once(event: 'disconnect', listener: () => void): unknown;
  disconnect(close: boolean): unknown;
}

/** What a client sends when it connects to a namespace. */
export type IoAuth = Readonly<Record<string, unknown>>;

/** A connection, over which there may be a socket for each namespace. */
export interface IoClient {
  readonly request: IncomingMessage;
  readonly conn: {
    readonly transport: { readonly name: string };
    once(event: 'close', listener: () => void): unknown;
    off(event: 'close', listener: () => void): unknown;
  };
}

/** A namespace of socket.io. */
export interface IoNamespace {
  /** Connects a client. Not documented. */
  _add?(client: IoClient, auth: IoAuth, connected: unknown): unknown;
}

type IoMiddleware = (socket: IoSocket, next: (error?: Error) => void) => void;
type AllowRequest = (request: IncomingMessage, decide: (problem: string | null, isAllowed: boolean) => void) => void;

interface IoEngine {
  readonly opts: { allowRequest?: AllowRequest | undefined };
}

/** A server of socket.io, or a namespace of one. */
export interface IoServer extends IoNamespace {
  readonly engine?: IoEngine;
  readonly server?: IoServer;
  readonly opts?: { readonly connectionStateRecovery?: { skipMiddlewares?: boolean } };
  path?(): string;
  /** The namespace `/`. */
  of?(name: string): IoNamespace;
  on(event: 'new_namespace', listener: (namespace: IoNamespace) => void): unknown;
  use(middleware: IoMiddleware): unknown;
}

type Verify = (
  info: { readonly req: IncomingMessage },
  decide: (isAllowed: boolean, status?: number, message?: string) => void,
) => unknown;

/** The parts of a server of ws that are used here. */
export interface WsServer {
  readonly options: { verifyClient?: Verify | null | undefined };
  handleUpgrade(...args: never[]): void;
}

export interface WsSocket {
  close(code: number, reason: string): void;
}

export function isIoServer(server: unknown): server is IoServer {
  const { use, engine, server: parent } = server as Partial<IoServer>;
  return typeof use === 'function' && (engine ?? parent) !== undefined;
}

export function isWsServer(server: unknown): server is WsServer {
  const { handleUpgrade, options } = server as Partial<WsServer>;
  return typeof handleUpgrade === 'function' && typeof options === 'object';
}

/** Asks before a handshake of socket.io, and then as the application has it. */
export function allowRequests({ opts }: IoEngine, allows: (request: IncomingMessage) => boolean): void {
  const { allowRequest } = opts;
  opts.allowRequest = (request, decide) => {
    if (!allows(request)) decide('Origin not allowed', false);
    else if (allowRequest) allowRequest(request, decide);
    else decide(null, true);
  };
}

/** Asks before a handshake of ws is answered, after what the application has. */
export function verifyClients(
  { options }: WsServer,
  allows: (request: IncomingMessage) => boolean,
  prepare: (request: IncomingMessage) => Promise<void>,
): void {
  const { verifyClient } = options;
  // ws awaits the decision of a function of two parameters.
  options.verifyClient = (info, decide) => {
    const go = (isAllowed: boolean, ...rest: [number?, string?]): void => {
      if (!isAllowed) decide(false, ...rest);
      else
        prepare(info.req).then(
          () => decide(true),
          () => decide(false, 503),
        );
    };
    if (!allows(info.req)) decide(false, 403);
    else if (!verifyClient) go(true);
    else if (verifyClient.length === 2) verifyClient(info, go);
    else go(verifyClient(info, go) === true, 401);
  };
}
