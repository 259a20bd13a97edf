import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { type AbstractHttpAdapter, HttpAdapterHost } from '@nestjs/core';
import { InvalidSessionOptionsError } from '../errors/session.errors.js';
import { bindToFastify } from './bind-to-fastify.js';
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

const NEST_TOO_OLD =
  'It needs NestJS 11.1.4 or later, and the installed @nestjs/core is older: update all packages of NestJS together.';

const IMPORTED_TWICE =
  'It is configured twice in this application: import SessionModule.forRoot() once, in the root module; it is global.';
