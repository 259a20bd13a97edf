import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { Inject, Injectable, type OnModuleInit, Optional } from '@nestjs/common';
import { type AbstractHttpAdapter, HttpAdapterHost } from '@nestjs/core';
import { type OpenConnection, refusalBody, type RequestSessions, SessionExtension } from '@nest-session/core/internal';
import { REQUEST_SESSIONS } from '../configuration/session-web-socket.options.js';
import { JSON_HEADERS, type Refusal, refusalAfter, tellOfLateRefusal } from './refusals.js';

/**
 * Handles every upgrade of the application's HTTP server before the code that serves it, such as GraphQL subscriptions.
 * Refuses upgrades of pages from other origins, and registers connections so that they close when their session ends.
 */
@Injectable()
export class UpgradeListener implements OnModuleInit {
  readonly #connections = new WeakMap<
    IncomingMessage,
    { readonly connection: OpenConnection; readonly ids: string[] }
  >();
  /** The paths of servers that close their connections themselves. */
  readonly #ownPaths = new Set<string>();

  constructor(
    @Inject(HttpAdapterHost) private readonly host: HttpAdapterHost,
    @Inject(REQUEST_SESSIONS) private readonly sessions: RequestSessions,
    @Optional() @Inject(SessionExtension) extension?: SessionExtension,
  ) {
    // Mercurius adds what the client sends first over the connection to the headers, and that may present a session.
    if (extension) extension.onOperation = (request) => this.#watch(request, request.socket);
  }

  onModuleInit(): void {
    this.sessions.ends.listen();
    const adapter = this.host.httpAdapter as AbstractHttpAdapter | undefined;
    const server = adapter?.getHttpServer() as Server | undefined;
    if (server) putBeforeUpgrades(server, (request, socket) => this.#accept(request, socket));
  }

  leave(path: string): void {
    this.#ownPaths.add(path);
  }

  /** Leaves a connection to the server that has accepted it. */
  release(request: IncomingMessage): void {
    const known = this.#connections.get(request);
    if (known) this.sessions.open.remove(known.connection, known.ids);
  }

  #accept(request: IncomingMessage, socket: Duplex): boolean {
    if (!this.sessions.allowsOriginOf(request)) return refuse(socket, refusalBody('cross-origin'));
    try {
      if (!this.sessions.excludes(request) && !this.#isLeft(request)) this.#watch(request, socket);
      return true;
    } catch (error) {
      // From here, an error of the application's own code would end the process.
      return refuse(socket, refusalAfter(error));
    }
  }

  /** Registers a connection for the sessions that its request presents, besides those that it has presented before. */
  #watch(request: IncomingMessage, socket: Duplex): void {
    const known = this.#connections.get(request);
    const ids = this.sessions.loader.presentedIds(request).filter((id) => !known?.ids.includes(id));
    if (ids.length === 0 || socket.destroyed) return;
    const { connection, ids: all } = known ?? this.#connect(request, socket);
    all.push(...ids);
    this.sessions.open.add(connection, ids);
  }

  #connect(request: IncomingMessage, socket: Duplex) {
    const connection: OpenConnection = { close: () => void socket.destroy() };
    const known = { connection, ids: [] as string[] };
    this.#connections.set(request, known);
    socket.once('close', () => this.sessions.open.remove(connection, known.ids));
    return known;
  }

  #isLeft({ url = '' }: IncomingMessage): boolean {
    // Some servers look for the path as it was sent, and some for where `..` leads.
    const paths = [url, URL.canParse(url, ANY_HOST) ? new URL(url, ANY_HOST).pathname : ''];
    return [...this.#ownPaths].some((own) =>
      paths.every((path) => path.startsWith(own) && /^(?:[/?]|$)/.test(path.slice(own.length))),
    );
  }
}

const ANY_HOST = 'http://any.invalid';

function refuse(socket: Duplex, refusal: Refusal): false {
  const body = JSON.stringify(refusal);
  const headers = { Connection: 'close', ...JSON_HEADERS, 'Content-Length': Buffer.byteLength(body) };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const head = [`HTTP/1.1 ${refusal.statusCode} ${STATUS_CODES[refusal.statusCode]}`, ...lines, '', body];
  // Without a listener, an error of the socket would end the process. Nothing else listens yet.
  socket.on('error', () => undefined).end(head.join('\r\n'), () => socket.destroy());
  return false;
}

type Upgrade = [request: IncomingMessage, socket: Duplex];

/**
 * Hides refused upgrades from all listeners of a server. An own listener could not, because Node.js would still call
 * the others. Without any listener, Node.js serves an upgrade as a plain request, and that must stay so.
 */
function putBeforeUpgrades(server: Server, accept: (...upgrade: Upgrade) => boolean): void {
  const decided = new WeakSet<IncomingMessage>();
  const { emit } = server;
  server.emit = function (this: Server, event: string, ...args: unknown[]): boolean {
    if (event === 'upgrade') {
      decided.add((args as Upgrade)[0]);
      if (!accept(...(args as Upgrade))) return true;
    }
    return Reflect.apply(emit, this, [event, ...args]) as boolean;
  };
  // Where Node.js calls the listeners in another way than by emit() of the server, nobody has decided yet.
  listenBeforeOthers(server, (request, socket) => {
    if (decided.has(request) || accept(request, socket)) return;
    tellOfLateRefusal('Node.js');
    // The other listeners still get it.
    socket.destroy();
  });
}

/** Adds a listener for upgrades while there are others, and before those that are there or come later. */
function listenBeforeOthers(server: Server, listener: (...upgrade: Upgrade) => void): void {
  if (server.listenerCount('upgrade') > 0) server.prependListener('upgrade', listener);
  server.on('newListener', (event, added) => {
    if (event !== 'upgrade' || added === listener || server.listeners('upgrade').includes(listener)) return;
    server.prependListener('upgrade', listener);
  });
  server.on('removeListener', (event, removed) => {
    if (event !== 'upgrade' || removed === listener || server.listenerCount('upgrade') > 1) return;
    server.off('upgrade', listener);
  });
}
