import type { IncomingMessage } from 'node:http';
import { Inject, Injectable } from '@nestjs/common';
import {
  type CloseReason,
  DetachedSession,
  logger,
  refusalBody,
  rememberRequest,
  type RequestSessions,
  shownError,
  WarnOnce,
} from '@nest-session/core/internal';
import { isObservable, Observable } from 'rxjs';
import { REQUEST_SESSIONS } from '../configuration/session-web-socket.options.js';
import { JSON_HEADERS, type Refusal, refusalAfter, tellOfLateRefusal } from '../connections/refusals.js';
import { UpgradeListener } from '../connections/upgrade.listener.js';
import { GatewayClient, openingOf } from './gateway.client.js';
import {
  allowLaterRequests,
  allowRequests,
  beforeMiddleware,
  dropMessages,
  type EngineResponse,
  type IoClient,
  type IoNamespace,
  type IoServer,
  type IoSocket,
  isIoServer,
  isWsServer,
  type LaterConnection,
  offClose,
  onClose,
  useFirst,
  verifyClients,
  whenLeft,
  type WsSocket,
} from './platforms.js';
import { beforeRecovery, bindPid, isBoundTo } from './state-recovery.js';

function closeCodeOf(reason: CloseReason): number {
  return reason === 'too many messages' ? POLICY_VIOLATION : UNAUTHORIZED;
}

// Of the range for applications, after the status 401.
const UNAUTHORIZED = 4401;
// RFC 6455, 7.4.1
const POLICY_VIOLATION = 1008;

/** Of a client of ws that is refused too late for a status. */
const FOREIGN = 'Origin not allowed';

/** The `connect_error` of a client of socket.io, which gets what is in `data`. */
function connectErrorOf({ message, ...data }: Refusal): Error {
  return Object.assign(new Error(message), { data });
}

/** The error for a client of socket.io that recovered its state before its session was checked. */
const UNDECIDED = 'State recovered without a session';

/** Gives the clients of gateways, and each of their messages, the session. */
@Injectable()
export class GatewaySockets {
  readonly #guarded = new WeakSet<object>();
  /**
   * The clients by socket. Before there is a socket, the key is the request for ws, and the auth object for a socket.io
   * client that recovers its state.
   */
  readonly #clients = new WeakMap<object, GatewayClient>();
  /** The connections of socket.io whose handshake presented nothing that opens a session, or not any more. */
  readonly #spent = new WeakSet<object>();
  /** Whether there is a server of ws, whose clients are known from their handshakes. */
  #hasWs = false;

  constructor(
    @Inject(REQUEST_SESSIONS) private readonly sessions: RequestSessions,
    @Inject(UpgradeListener) private readonly upgrades: UpgradeListener,
  ) {}

  /** Called with each server or namespace before it has clients. */
  guard(server: object): void {
    if (this.#guarded.has(server)) return;
    this.#guarded.add(server);
    const allows = (request: IncomingMessage): boolean => this.sessions.allowsOriginOf(request);
    if (isIoServer(server)) {
      this.#guardIo(server, allows);
      useFirst(server, (socket, next) => {
        // A namespace that a pattern has made has the middleware of the pattern, and its own.
        if (this.#clients.has(socket)) return next();
        if (!allows(socket.request)) {
          tellOfLateRefusal('socket.io');
          return next(connectErrorOf(refusalBody('cross-origin')));
        }
        void this.#openIo(socket).then(
          (client) => {
            if (client instanceof Error) next(client);
            else this.#run(client.opening, next);
          },
          (error: unknown) => next(connectErrorOf(refusalAfter(error))),
        );
      });
    } else if (isWsServer(server)) {
      this.#hasWs = true;
      verifyClients(server, allows, async (request, verify) =>
        this.#run((await this.#openWs(request)).opening, verify),
      );
    }
  }

  /** Calls `connect`, which reports a client to a gateway. `args` are the arguments of the platform's event. */
  connect(args: readonly unknown[], connect: () => void): void {
    const [socket, request] = args as [object, IncomingMessage?];
    const client = this.#clients.get(socket) ?? this.#adopt(socket, request);
    if (!client) {
      if (this.#isForeign(request)) return refuseForeign(socket);
      if (request && this.#hasWs) log.warn('ws', UNSEEN);
      return connect();
    }
    if (client.closing !== undefined) return;
    const { opening } = client;
    const run = (held: DetachedSession | null) => DetachedSession.run(held, this.sessions.scope, connect);
    // An adapter reports a client to all gateways of a server in one go. Gateways that it reports to later load the
    // session again.
    if (opening === undefined) void client.session().then((held) => held !== undefined && run(held));
    else run(opening);
    queueMicrotask(() => client.forgetOpening());
  }

  async handle(
    socket: object,
    args: readonly unknown[],
    handle: (args: readonly unknown[]) => unknown,
  ): Promise<unknown> {
    const client = this.#clients.get(socket);
    if (!client) return handle(args);
    const held = await client.session();
    if (held === undefined) return undefined;
    const result = await DetachedSession.run(held, this.sessions.scope, () =>
      handle(held ? savedFirst(args, held) : args),
    );
    // Nest subscribes outside of our context, and the handler runs only at the subscription.
    if (isObservable(result)) {
      const handled = new Observable((subscriber) =>
        DetachedSession.run(held, this.sessions.scope, () => result.subscribe(subscriber)),
      );
      return client.isGone ? begun(handled) : handled;
    }
    // The result is no Observable if a guard refused the message. A failed save is already logged.
    await held?.saveChanges()?.catch(() => undefined);
    return result;
  }

  #guardIo(server: IoServer, allows: (request: IncomingMessage) => boolean): void {
    const root = server.engine ? server : server.server;
    const { connectionStateRecovery: recovery } = root?.opts ?? {};
    if (recovery) this.#guardRecovery(server.of?.('/') ?? server);
    if (!root?.engine || this.#guarded.has(root.engine)) return;
    this.#guarded.add(root.engine);
    allowRequests(root.engine, allows);
    allowLaterRequests(root.engine, (request, connection) => allows(request) && this.#isOfClient(request, connection));
    beforeMiddleware(root.engine, (request, response, run, done) => {
      // What decides about the handshake comes after middleware, and refuses it.
      if (allows(request)) void this.#prepare(request, response, run);
      else done();
    });
    // A client that reconnects after an interruption needs its session as well.
    if (recovery) recovery.skipMiddlewares = false;
    // Also one without a gateway, whose sockets end with their session, and one that matches a pattern, which its first
    // client creates.
    root.on('new_namespace', (namespace) => {
      if (recovery) this.#guardRecovery(namespace);
      this.guard(namespace);
    });
    // socket.io sends its clients a disconnect packet before it closes the connection, so leave its connections to it.
    if (root.path) this.upgrades.leave(root.path());
  }

  /** Whether a request with the `sid` of a connection presents what its handshake has presented. No store is asked. */
  #isOfClient(request: IncomingMessage, connection: LaterConnection): boolean {
    const { loader } = this.sessions;
    const { request: handshake } = connection;
    if (this.sessions.excludes(handshake)) return true;
    const ids = loader.presentedIds(handshake);
    // A browser may have another cookie by now. It then learns that its session has ended.
    if (ids.length === 0 || (ids.length === 1 && this.#spent.has(connection))) return true;
    return loader.presentedIds(request).some((id) => ids.includes(id));
  }

  #guardRecovery(namespace: IoNamespace): void {
    beforeRecovery(namespace, async (connection, auth, pid) => {
      const withoutState = { ...auth, pid: undefined, offset: undefined };
      // If the store is down, the middleware refuses the client.
      const client = await this.#loadIo(connection).catch(() => undefined);
      if (!client) return withoutState;
      // The state may belong to an ended session, to the session before a login, or to another user of the browser.
      const mayRecover = client.closing === undefined && isBoundTo(pid, client.id);
      const allowed = mayRecover ? auth : withoutState;
      this.#clients.set(allowed, client);
      return allowed;
    });
  }

  async #prepare(request: IncomingMessage, response: EngineResponse, run: () => void): Promise<void> {
    let opening: DetachedSession | null;
    try {
      opening = await openingOf(this.sessions, request);
    } catch (error) {
      const refusal = refusalAfter(error);
      response.writeHead(refusal.statusCode, JSON_HEADERS);
      return void response.end(JSON.stringify(refusal));
    }
    opening?.attach();
    this.#run(opening, run);
  }

  #run(opening: DetachedSession | null | undefined, run: () => void): void {
    if (opening === undefined) run();
    else DetachedSession.run(opening, this.sessions.scope, run);
  }

  async #openIo(socket: IoSocket): Promise<GatewayClient | Error> {
    const known = this.#clients.get(socket.handshake.auth);
    if (socket.recovered && !known) return new Error(UNDECIDED);
    const client = known ?? (await this.#loadIo(socket));
    this.#clients.set(socket, client);
    // The connection may stay open, because other namespaces may use it.
    whenLeft(socket, () => {
      offClose(socket, client.disconnect);
      client.disconnect();
    });
    if (socket.pid !== undefined && !socket.recovered) socket.pid = bindPid(socket.pid, client.id);
    if (client.id === undefined) this.#spent.add(socket.conn);
    client.connect((reason) => {
      if (reason !== 'too many messages') this.#spend(socket.conn);
      // Over long polling, closing the connection would wait for a poll that may never come.
      socket.disconnect(socket.conn.transport.name !== 'polling');
    });
    return client.closing === undefined ? client : new Error(client.closing);
  }

  /** From now on, whoever knows its `sid` learns that it is over, and nothing that still waits for its user. */
  #spend(connection: IoSocket['conn']): void {
    if (!this.#spent.has(connection)) dropMessages(connection);
    this.#spent.add(connection);
  }

  async #loadIo(connection: IoClient): Promise<GatewayClient> {
    const client = this.#newClient(connection.request);
    onClose(connection, client.disconnect);
    try {
      await client.load();
    } catch (error) {
      offClose(connection, client.disconnect);
      throw error;
    }
    return client;
  }

  async #openWs(request: IncomingMessage): Promise<GatewayClient> {
    const client = this.#newClient(request);
    request.socket.once('close', client.disconnect);
    if (request.socket.destroyed) client.disconnect();
    await client.load();
    this.#clients.set(request, client);
    return client;
  }

  #isForeign(request: Partial<IncomingMessage> | undefined): boolean {
    return request?.headers !== undefined && !this.sessions.allowsOriginOf(request as IncomingMessage);
  }

  #adopt(socket: object, request: IncomingMessage | undefined): GatewayClient | undefined {
    const client = request && this.#clients.get(request);
    if (!client) return undefined;
    rememberRequest(socket, request);
    // Message handlers get no request, so put it on the socket, as socket.io does.
    if (this.sessions.parts.extension.properties)
      Object.defineProperty(socket, 'request', { value: request, configurable: true });
    this.#clients.set(socket, client);
    client.connect((reason) => (socket as WsSocket).close(closeCodeOf(reason), reason));
    return client;
  }

  #newClient(request: IncomingMessage): GatewayClient {
    this.upgrades.release(request);
    return new GatewayClient(this.sessions, request);
  }
}

const log = new WarnOnce();

const UNSEEN =
  'This version of ws does not ask before it accepts a client, so messages in gateways have no session: install another ' +
  'version';

function refuseForeign(socket: Partial<WsSocket>): void {
  tellOfLateRefusal('ws');
  socket.close?.(POLICY_VIOLATION, FOREIGN);
}

/**
 * Begins to handle the message of a client that has left while its session was loaded: no adapter subscribes for such a
 * client, and without a subscription the handler does not run. It ends as if the client had left now.
 */
function begun(handled: Observable<unknown>): Observable<unknown> {
  let isSubscribed = false;
  setImmediate(() => {
    if (isSubscribed) return;
    const subscription = handled.subscribe({ error: () => undefined });
    setImmediate(() => subscription.unsubscribe());
  });
  return new Observable((subscriber) => {
    isSubscribed = true;
    return handled.subscribe(subscriber);
  });
}

/** Delays the acknowledgement functions among the arguments until the session is saved. */
function savedFirst(args: readonly unknown[], held: DetachedSession): unknown[] {
  return args.map((arg) => {
    if (typeof arg !== 'function') return arg;
    return (...values: unknown[]): void => {
      const acknowledge = (): unknown => Reflect.apply(arg, undefined, values);
      const saving = held.saveChanges();
      if (!saving) acknowledge();
      // If the save failed, the interceptor reports it to the filters after the handler.
      else saving.then(acknowledge, () => undefined).catch(tellUnacknowledged);
    };
  });
}

/** For example of a value that socket.io cannot encode. */
function tellUnacknowledged(error: unknown): void {
  logger.error(`A message was not acknowledged, because its acknowledgement failed: ${shownError(error)}`);
}
