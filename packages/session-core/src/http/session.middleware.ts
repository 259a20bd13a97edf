import type { IncomingMessage, ServerResponse } from 'node:http';
import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { type AbstractHttpAdapter, HttpAdapterHost } from '@nestjs/core';
import { InvalidSessionOptionsError } from '../errors/session.errors.js';
import { setOrigin } from '../resolvers/proxied-request.js';
import { RequestSessions } from './request-sessions.js';
import { RouteExplorer } from './route.explorer.js';
import { RequestServer } from './serve-request.js';
import { KEEP_SESSION_IDLE } from './session-route.decorators.js';

const boundHosts = new WeakSet<HttpAdapterHost>();
let isAnyInstalled = false;

/** Gives every request its session, before any middleware of the application runs. */
@Injectable()
export class SessionMiddleware implements OnModuleInit {
  readonly #server: RequestServer;

  constructor(
    @Inject(HttpAdapterHost) host: HttpAdapterHost,
    @Inject(RequestSessions) sessions: RequestSessions,
    @Inject(RouteExplorer) private readonly routes: RouteExplorer,
  ) {
    this.#server = new RequestServer(sessions);
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
    this.#server.open(!this.routes.has(KEEP_SESSION_IDLE));
  }

  #bind(adapter: AbstractHttpAdapter): void {
    if (adapter.getType() === 'fastify') bindToFastify(adapter.getInstance(), this.#server.serve);
    else adapter.use(this.#server.serve);
  }
}

interface FastifyRequest {
  readonly raw: IncomingMessage & { session?: unknown };
  readonly protocol: string;
  readonly hostname: string;
  readonly ip: string;
}

/** The part of a Fastify instance that is used here. */
interface FastifyInstance {
  decorateRequest(
    name: string,
    property: { getter(this: FastifyRequest): unknown; setter(this: FastifyRequest, value: unknown): void },
  ): unknown;
  addHook(name: 'onRequest', hook: OnRequest): unknown;
  addHook(name: 'onRegister', hook: (context: FastifyInstance) => void): unknown;
  use?: Use;
}

/** Registers middleware; of @fastify/middie, the engine that runs it. */
type Use = (this: FastifyInstance, ...middleware: unknown[]) => unknown;

type OnRequest = (
  request: FastifyRequest,
  reply: { readonly raw: ServerResponse },
  next: (error?: unknown) => void,
) => void;

/**
 * Runs a middleware for every request of a Fastify server, before the application's own middleware and hooks. A hook
 * does it, because the engine that runs middleware costs a request more than its session.
 */
function bindToFastify(fastify: FastifyInstance, middleware: RequestServer['serve']): void {
  // Middleware gets the Node.js request, and handlers get Fastify's.
  fastify.decorateRequest('session', {
    getter() {
      return this.raw.session;
    },
    setter(session) {
      this.raw.session = session;
    },
  });
  fastify.addHook('onRequest', (request, reply, next) => {
    setOrigin(request.raw, request);
    middleware(request.raw, reply.raw, next);
  });
  // Otherwise the engine is added later, and its hook runs after ours.
  if (!fastify.use) return;
  putBeforeFirst(middleware, fastify, fastify.use);
  // The engine gives each context of a plugin its own `use()`.
  fastify.addHook('onRegister', (context) => {
    if (context.use) putBeforeFirst(middleware, context, context.use);
  });
}

/**
 * NestFactory adds the engine of middleware before it constructs providers, so middleware runs before our hook. Where
 * there is any, ours goes in front of it.
 */
function putBeforeFirst(middleware: RequestServer['serve'], fastify: FastifyInstance, use: Use): void {
  fastify.use = (...args) => {
    fastify.use = use;
    use.call(fastify, middleware);
    return use.apply(fastify, args);
  };
}

const NEST_TOO_OLD =
  'It needs NestJS 11.1.4 or later, and the installed @nestjs/core is older: update all packages of NestJS together.';

const IMPORTED_TWICE =
  'It is configured twice in this application: import SessionModule.forRoot() once, in the root module; it is global.';
