import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { type AbstractHttpAdapter, HttpAdapterHost } from '@nestjs/core';
import { InvalidSessionOptionsError, SessionStateError } from '../errors/session.errors.js';
import { assignedAt } from '../logging/assigned-at.js';
import { logger } from '../logging/session.logger.js';
import type { Session } from '../session/session.js';
import { bindToFastify, type NodeMiddleware } from './bind-to-fastify.js';
import type { RequestSessionLoader } from './request-session.loader.js';
import { RequestSessions } from './request-sessions.js';
import { isDestroyed } from './response-functions.js';
import { RouteExplorer } from './route.explorer.js';
import { ResponseCommit, type ResponseCommitParts } from './response-commit.js';
import { SessionExtension } from './session-extension.js';
import { KEEP_SESSION_IDLE } from './session-route.decorators.js';
import { SessionScope } from './session.scope.js';

const boundHosts = new WeakSet<HttpAdapterHost>();
let isAnyInstalled = false;

/** Gives every request its session, before any middleware of the application runs. */
@Injectable()
export class SessionMiddleware implements OnModuleInit {
  /** Defined once the module of the store is constructed. */
  #store: { readonly loader: RequestSessionLoader; readonly parts: ResponseCommitParts } | undefined;
  /** Whether a touch need not wait until the route is known. */
  #touchesAtOnce = false;

  constructor(
    @Inject(HttpAdapterHost) host: HttpAdapterHost,
    @Inject(RequestSessions) private readonly sessions: RequestSessions,
    @Inject(SessionScope) private readonly scope: SessionScope,
    @Inject(RouteExplorer) private readonly routes: RouteExplorer,
    @Inject(SessionExtension) private readonly extension: SessionExtension,
  ) {
    // Since that version.
    if (!('init$' in host)) throw new InvalidSessionOptionsError('SessionModule', [NEST_TOO_OLD]);
    if (boundHosts.has(host)) throw new InvalidSessionOptionsError('SessionModule', [IMPORTED_TWICE]);
    boundHosts.add(host);
    isAnyInstalled = true;
    // Under @nestjs/testing there is no adapter yet; otherwise `init$` replays. Middleware that is registered any later
    // runs after the application's own, or not at all.
    host.init$.subscribe(() => {
      const adapter = host.httpAdapter as AbstractHttpAdapter | undefined;
      if (adapter) this.#bind(adapter);
    });
  }

  /** Whether any application of this process has sessions. */
  static get isInstalled(): boolean {
    return isAnyInstalled;
  }

  onModuleInit(): void {
    const { loader, parts } = this.sessions;
    this.#store = { loader, parts };
    this.#touchesAtOnce = !this.routes.has(KEEP_SESSION_IDLE);
  }

  #bind(adapter: AbstractHttpAdapter): void {
    const middleware: NodeMiddleware = (request, response, next) => this.#serve(request, response, next);
    if (adapter.getType() === 'fastify') bindToFastify(adapter.getInstance(), middleware);
    else adapter.use(middleware);
  }

  #serve(request: IncomingMessage, response: ServerResponse, next: () => void): void {
    const store = this.#store;
    // A request that is routed again keeps its session.
    if (!store || ResponseCommit.of(request)?.parts === store.parts) return next();
    if (this.sessions.excludes(request)) return next();
    const loading = store.loader.load(request);
    if (!loading) return this.#enter(new ResponseCommit(request, response, store.parts), next);
    const isBodyLost = bodyWatchOf(request);
    void loading.then((found) => {
      if (isDestroyed(response) && !isServedWithoutClient(request)) return;
      // Nobody is there to be answered, so the connection must not wait for it.
      if (isBodyLost?.()) return void response.destroy();
      const commit = new ResponseCommit(request, response, store.parts, found);
      const { session } = commit;
      // A session with five seconds left must outlive a handler of ten.
      if (this.#touchesAtOnce && !session.touch.isRolling) void session.touch.send();
      if (!isDestroyed(response)) return this.#enter(commit, next);
      // By then, all have emitted what they emit when a client leaves.
      setImmediate(() => {
        repeatClose(request, response);
        this.#enter(commit, next);
      });
    });
  }

  #enter({ request, session }: ResponseCommit, next: () => void): void {
    const { properties } = this.extension;
    if (properties) Object.defineProperties(request, properties);
    else Object.defineProperty(request, 'session', sessionProperty);
    this.scope.serve(session, next);
  }
}

type Http2Request = IncomingMessage & { readonly stream?: { readonly endAfterHeaders: boolean } };

/**
 * Whether a request whose client left while its session was loaded is served all the same: because of what it changes.
 * Not when it has a body, because Node.js has discarded that.
 */
function isServedWithoutClient({ method, headers, stream }: Http2Request): boolean {
  if (method === 'GET' || method === 'HEAD') return false;
  return !announcesBody(headers) && stream?.endAfterHeaders !== false;
}

function announcesBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/**
 * Tells later whether the client left before anybody has read the body: the parsers of Express then skip it, and the
 * handler would run as if nothing had been sent. The response shows it later, or never where it waits for another one
 * of its connection. Undefined for a request without a body.
 */
function bodyWatchOf(request: IncomingMessage): (() => boolean) | undefined {
  const { headers, socket } = request;
  if (!announcesBody(headers)) return undefined;
  // Adapters of serverless platforms give a body that is read already, on a socket that never was readable.
  const { readable } = socket;
  return () => !request.readableEnded && (request.aborted || socket.destroyed || (readable && !socket.readable));
}

/** Tells those who listen from now on that the client has left. All others were told when it left. */
function repeatClose(request: IncomingMessage, response: ServerResponse): void {
  // On HTTP/2, other requests may go on using the connection.
  const emitters = request.httpVersionMajor === 1 ? [request, response, request.socket] : [request, response];
  for (const emitter of emitters) {
    emitter.on('newListener', (event: string | symbol, listener: (...args: unknown[]) => unknown) => {
      if (event !== 'close' && event !== 'aborted') return;
      process.nextTick(() => {
        // `once()` adds a function that has the listener. It is not found when it was removed in the meantime.
        const added = emitter.rawListeners(event) as ((...args: unknown[]) => unknown)[];
        added
          .find((each) => each === listener || (each as { listener?: unknown }).listener === listener)
          ?.call(emitter);
      });
    });
  }
}

/**
 * `request.session`. Not enumerable, so that copying or printing a request does not use its session. All requests share
 * the accessors, because V8 cannot optimize requests that each have their own.
 */
const sessionProperty = {
  configurable: true,
  get(this: IncomingMessage): Session | undefined {
    return ResponseCommit.of(this)?.session.shown;
  },
  set: assignSession,
};

/** The applications that were told of an assignment. */
const told = new WeakSet<ResponseCommitParts>();

/**
 * Another library assigns its own session: that is then `request.session` of this request, and everything else of this
 * library keeps its own.
 * @throws SessionStateError for a sign-out as in express-session, because the user would stay signed in
 */
function assignSession(this: IncomingMessage, value: unknown): void {
  const commit = ResponseCommit.of(this);
  const existing = commit?.session.existing;
  const isSignOut = (value === null || value === undefined) && !commit?.isSessionDeleted && existing?.principalName;
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

const NEST_TOO_OLD =
  'It needs NestJS 11.1.4 or later, and the installed @nestjs/core is older: update all packages of NestJS together.';

const IMPORTED_TWICE =
  'It is configured twice in this application: import SessionModule.forRoot() once, in the root module; it is global.';
