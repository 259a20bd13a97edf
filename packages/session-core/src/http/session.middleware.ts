import type { IncomingMessage, ServerResponse } from 'node:http';
import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { type AbstractHttpAdapter, HttpAdapterHost, ModuleRef } from '@nestjs/core';
import { SessionRepository } from '../repository/session.repository.js';
import { InvalidSessionOptionsError, SessionStateError } from '../errors/session.errors.js';
import { SESSION_OPTIONS } from '../configuration/session.module-definition.js';
import type { ResolvedSessionOptions } from '../configuration/session.options.js';
import type { Session } from '../session/session.js';
import { ResponseHold } from './response-hold.js';
import { SessionIdResolver } from '../resolvers/session-id.resolver.js';
import type { FoundSession } from './request-session.js';
import { RequestSessionLoader } from './request-session.loader.js';
import type { ResponseCommitParts } from './response-commit.js';
import { SessionExchange } from './session-exchange.js';
import { SessionScope } from './session.scope.js';
import { StoreFailureLog } from './store-failure.log.js';

type Next = (error?: unknown) => void;

interface RawRequest {
  readonly raw: { session?: unknown };
}

/** The part of a Fastify instance that is used here. */
interface RequestDecorator {
  decorateRequest(
    name: string,
    property: { getter(this: RawRequest): unknown; setter(this: RawRequest, value: unknown): void },
  ): unknown;
}

const boundHosts = new WeakSet<HttpAdapterHost>();

/** Gives every request its session, before anything that the application has registered. */
@Injectable()
export class SessionMiddleware implements OnModuleInit {
  /** There once the module of the store is constructed. */
  #store: { readonly loader: RequestSessionLoader; readonly parts: ResponseCommitParts } | undefined;

  constructor(
    @Inject(HttpAdapterHost) host: HttpAdapterHost,
    @Inject(ModuleRef) private readonly moduleRef: ModuleRef,
    @Inject(SESSION_OPTIONS) private readonly options: ResolvedSessionOptions,
    @Inject(SessionIdResolver) private readonly resolver: SessionIdResolver,
    @Inject(SessionScope) private readonly scope: SessionScope,
  ) {
    if (boundHosts.has(host)) throw new InvalidSessionOptionsError('SessionModule', [IMPORTED_TWICE]);
    boundHosts.add(host);
    // Under @nestjs/testing there is no adapter yet; it replays where there is one. Middleware that is registered any
    // later than here does not run before the application's own, or not at all.
    host.init$.subscribe(() => {
      const adapter = host.httpAdapter as AbstractHttpAdapter | undefined;
      if (adapter) this.#bind(adapter);
    });
  }

  onModuleInit(): void {
    // Not injected: as an optional dependency it would be missing, too, when its own construction has failed, and the
    // wrong reason would be told.
    const repository = this.#findRepository();
    const { resolver, options } = this;
    const failures = new StoreFailureLog();
    const loader = new RequestSessionLoader(repository, resolver, options, failures);
    this.#store = { loader, parts: { repository, resolver, failures } };
  }

  #findRepository(): SessionRepository {
    try {
      return this.moduleRef.get<SessionRepository>(SessionRepository, { strict: false });
    } catch {
      throw new InvalidSessionOptionsError('SessionModule', [NO_REPOSITORY]);
    }
  }

  #bind(adapter: AbstractHttpAdapter): void {
    if (adapter.getType() === 'fastify') {
      // Middleware has the request of Node.js, and handlers that of Fastify.
      adapter.getInstance<RequestDecorator>().decorateRequest('session', {
        getter() {
          return this.raw.session;
        },
        setter(session) {
          this.raw.session = session;
        },
      });
    }
    adapter.use((request: IncomingMessage, response: ServerResponse, next: Next) => {
      const store = this.#store;
      if (!store || this.options.exclude?.(request)) return next();
      const keepsIdle = this.options.keepIdle?.(request) === true;
      const enter = (found: FoundSession) => {
        const exchange = new SessionExchange(request, response, found, store.parts);
        if (keepsIdle) exchange.session.keepIdle();
        this.#enter(exchange, next);
      };
      const found = store.loader.load(request);
      if (found instanceof Promise) void found.then(enter);
      else enter(found);
    });
  }

  #enter(exchange: SessionExchange, next: Next): void {
    const { request, response, commit } = exchange;
    Object.defineProperty(request, 'session', sessionProperty);
    ResponseHold.install(response, commit);
    this.scope.run(exchange, next);
  }
}

/**
 * `request.session`. Not enumerable: who copies or prints a request does not ask for its session. One for all requests:
 * accessors of its own would make each request an object that V8 cannot optimize.
 */
const sessionProperty = {
  configurable: true,
  get(this: IncomingMessage): Session | undefined {
    const exchange = SessionExchange.of(this);
    // An access log that asks for the session after the response must not fail with the store.
    if (exchange?.session.isUnavailable && exchange.commit.headersSent) return undefined;
    return exchange?.session.session;
  },
  set: refuseAssignment,
};

function refuseAssignment(): never {
  throw new SessionStateError(
    'request.session cannot be assigned: call session.invalidate() to end the session, session.setAttribute() to keep something',
  );
}

const NO_REPOSITORY =
  'There is no store for the sessions: import RedisSessionModule.forRoot() of @nest-session/redis, or ' +
  'MapSessionModule.forRoot() to keep them in the memory of a single process.';

const IMPORTED_TWICE =
  'It is configured twice in this application: import SessionModule.forRoot() once, in the root module; it is global.';
