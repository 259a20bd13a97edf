import { Inject, Injectable, type OnModuleInit, Optional } from '@nestjs/common';
import { ApplicationConfig } from '@nestjs/core';
import { GuardedConnections } from './guarded-connections.js';
import { putFirst, putLast } from './put-first.js';
import { RevocationGuard, RevocationInterceptor } from './revocation.js';
import { RouteExplorer } from './route.explorer.js';
import { saveBeforeNestAnswers } from './save-before-nest-answers.js';
import { KEEP_SESSION_IDLE, SESSION_OUTAGE_POLICY } from './session-route.decorators.js';
import { SessionRouteGuard } from './session-route.guard.js';
import { SessionInterceptor } from './session.interceptor.js';
import { SessionScope } from './session.scope.js';

// One of each for all applications of the process, because they share the classes of controllers, which refer to them.
const interceptor = new SessionInterceptor();
const revocation = new RevocationInterceptor();

/** Puts the guard, the interceptor and the current request of sessions where the application needs them. */
@Injectable()
export class SessionEnhancers implements OnModuleInit {
  #isServing = false;

  constructor(
    @Inject(RouteExplorer) private readonly routes: RouteExplorer,
    @Inject(SessionRouteGuard) private readonly guard: SessionRouteGuard,
    @Inject(SessionScope) private readonly scope: SessionScope,
    @Inject(GuardedConnections) private readonly connections: GuardedConnections,
    // Optional, because it is undocumented that Nest provides it in every module.
    @Optional() @Inject(ApplicationConfig) private readonly config?: ApplicationConfig,
  ) {}

  /**
   * Puts guards and the interceptor that saves before those of the application. To be called in
   * `NestModule.configure()`, where all global guards and interceptors are known and no route is registered yet. Nest
   * serves routes without an interceptor faster: ours are only where the application has some anyway, and the one that
   * saves also where Nest does not send what the handler returns.
   */
  install(): void {
    this.#isServing = true;
    const isIntercepted = this.#hasGlobalInterceptors;
    for (const { method } of this.routes.interceptedHandlers()) putLast(revocation, method);
    if (isIntercepted) this.config?.getGlobalInterceptors().push(revocation);
    this.config?.getGlobalGuards().unshift(new RevocationGuard(this.connections, this.#hasGlobalGuards));
    if (this.routes.has(KEEP_SESSION_IDLE) || this.routes.has(SESSION_OUTAGE_POLICY)) {
      this.config?.getGlobalGuards().unshift(this.guard);
    }
    saveBeforeNestAnswers();
    if (isIntercepted) this.config?.getGlobalInterceptors().unshift(interceptor);
    else for (const handler of this.routes.handlersToIntercept()) putFirst(interceptor, handler);
  }

  onModuleInit(): void {
    // Not earlier, because middleware classes are known only now. Without HTTP there is no request to pay for it.
    if (this.#isServing && !this.routes.injectsContext) this.scope.leaveOut();
  }

  get #hasGlobalGuards(): boolean {
    const { config } = this;
    return [...(config?.getGlobalGuards() ?? []), ...(config?.getGlobalRequestGuards() ?? [])].length > 0;
  }

  /** They may change the session of any request after its handler: save outside. */
  get #hasGlobalInterceptors(): boolean {
    const { config } = this;
    return [...(config?.getGlobalInterceptors() ?? []), ...(config?.getGlobalRequestInterceptors() ?? [])].length > 0;
  }
}
