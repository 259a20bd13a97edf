import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { type AbstractHttpAdapter, HttpAdapterHost } from '@nestjs/core';
import { RequestSessions } from '@nest-session/core/transport';
import { type OpenConnection, OpenConnections } from './open-connections.js';

const FORBIDDEN = 'HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 0\r\n\r\n';

/**
 * Sees every upgrade of the application's HTTP server before what serves it, such as subscriptions of GraphQL. Refuses
 * those of foreign pages, and has the connections closed when their session ends.
 */
@Injectable()
export class UpgradeListener implements OnModuleInit {
  readonly #connections = new WeakMap<
    IncomingMessage,
    { readonly connection: OpenConnection; readonly ids: string[] }
  >();
  /** The paths of servers that close their connections by themselves. */
  readonly #ownPaths = new Set<string>();

  constructor(
    @Inject(HttpAdapterHost) private readonly host: HttpAdapterHost,
    @Inject(RequestSessions) private readonly sessions: RequestSessions,
    @Inject(OpenConnections) private readonly open: OpenConnections,
  ) {}

  onModuleInit(): void {
    const adapter = this.host.httpAdapter as AbstractHttpAdapter | undefined;
    const server = adapter?.getHttpServer() as Server | undefined;
    if (server) beforeOthers(server, (request, socket) => this.#see(request, socket));
  }

  /** Leaves the connections of a path to their server. */
  leave(path: string): void {
    this.#ownPaths.add(path);
  }

  /** Leaves a connection to the server that has taken it. */
  release(request: IncomingMessage): void {
    const known = this.#connections.get(request);
    if (known) this.open.remove(known.connection, known.ids);
  }

  #see(request: IncomingMessage, socket: Duplex): void {
    if (!this.sessions.allowsOriginOf(request)) {
      socket.end(FORBIDDEN);
      return;
    }
    if (this.sessions.excludes(request) || this.#isLeft(request)) return;
    const ids = this.sessions.loader.presentedIds(request);
    if (ids.length === 0) return;
    const connection = { close: () => socket.destroy() };
    this.#connections.set(request, { connection, ids });
    this.open.add(connection, ids);
    socket.once('close', () => this.open.remove(connection, ids));
  }

  #isLeft({ url = '' }: IncomingMessage): boolean {
    return [...this.#ownPaths].some((path) => url.startsWith(path));
  }
}

/**
 * Calls a listener first at every upgrade, once another listens as well: where nobody listens, Node.js serves an upgrade
 * as a plain request.
 */
function beforeOthers(server: Server, listener: (request: IncomingMessage, socket: Duplex) => void): void {
  if (server.listenerCount('upgrade') > 0) {
    server.prependListener('upgrade', listener);
    return;
  }
  const wait = (event: string | symbol): void => {
    if (event !== 'upgrade') return;
    server.off('newListener', wait);
    server.prependListener('upgrade', listener);
  };
  server.on('newListener', wait);
}
