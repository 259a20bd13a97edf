import { AsyncResource } from 'node:async_hooks';
import { type CanActivate, Inject, Injectable, type OnModuleInit, Optional } from '@nestjs/common';
import { ApplicationConfig } from '@nestjs/core';
import { WarnOnce } from '../logging/warn-once.js';
import { DEVICE_BOUND } from '../device/device-bound.guard.js';
import { hasForeignGuard, isMetadataKnown, putFirst, putLast } from './handler-metadata.js';
import { GuardedConnections } from './open-connections.js';
import { RevocationGuard, RevocationInterceptor } from './revocation.js';
import { type MessageClient, RouteExplorer } from './route.explorer.js';
import { KEEP_SESSION_IDLE, SESSION_OUTAGE_POLICY } from './session-route.decorators.js';
import { SessionRouteGuard } from './session-route.guard.js';
import { saveBeforeNestAnswers, SessionInterceptor } from './session.interceptor.js';
import { SessionScope } from './session.scope.js';

const interceptor = new SessionInterceptor();
const revocation = new RevocationInterceptor();
const warnings = new WarnOnce();

@Injectable()
export class SessionEnhancers implements OnModuleInit {
  #isServing = false;

  constructor(
    @Inject(RouteExplorer) private readonly routes: RouteExplorer,
    @Inject(SessionScope) private readonly scope: SessionScope,
    @Inject(GuardedConnections) private readonly connections: GuardedConnections,
    // Optional, because it is undocumented that Nest provides it in every module.
    @Optional() @Inject(ApplicationConfig) private readonly config?: ApplicationConfig,
  ) {}

  /**
   * Call it in `NestModule.configure()`, where all global guards and interceptors are known and no route is registered.
   * Nest serves routes without an interceptor faster: ours are only where the application has some anyway, and the one
   * that saves also where Nest does not send what the handler returns.
   */
  async install(): Promise<void> {
    this.#isServing = true;
    const { config } = this;
    if (!config || !isMetadataKnown) warnings.warn('metadata', UNKNOWN_NEST);
    const isIntercepted = this.#hasGlobalInterceptors;
    // Nest runs the global ones of a request behind all other global ones.
    const isEach = config !== undefined && config.getGlobalRequestInterceptors().length > 0;
    for (const { method } of this.routes.interceptedHandlers(isEach)) putLast(revocation, method);
    if (isIntercepted) config?.useGlobalInterceptors(revocation);
    const guards: CanActivate[] = [new RevocationGuard(this.connections, this.#hasForeignGuard)];
    const marks = [KEEP_SESSION_IDLE, SESSION_OUTAGE_POLICY, DEVICE_BOUND];
    if (marks.some((mark) => this.routes.has(mark))) guards.unshift(new SessionRouteGuard());
    if (config)
      putBefore(
        () => config.getGlobalGuards(),
        guards,
        () => config.useGlobalGuards(...guards),
      );
    const isSavedByNest = await saveBeforeNestAnswers();
    if (!isSavedByNest) warnings.warn('answers', SAVED_BY_INTERCEPTOR);
    if (config && isIntercepted)
      putBefore(
        () => config.getGlobalInterceptors(),
        [interceptor],
        () => config.useGlobalInterceptors(interceptor),
      );
    else for (const handler of this.routes.handlersToIntercept(isSavedByNest)) putFirst(interceptor, handler);
  }

  onModuleInit(): void {
    // Not earlier, because middleware classes are known only now. Without HTTP there is no request to pay for it.
    if (this.#isServing && !this.routes.injectsContext) this.scope.leaveOut();
    else this.routes.clients.forEach(connectOutside);
  }

  get #hasForeignGuard(): boolean {
    const { config } = this;
    const ofRequests = config?.getGlobalRequestGuards().map(({ metatype }) => metatype as object) ?? [];
    return hasForeignGuard([...(config?.getGlobalGuards() ?? []), ...ofRequests]);
  }

  /** They may change the session of any request after its handler: save outside. */
  get #hasGlobalInterceptors(): boolean {
    const { config } = this;
    return [...(config?.getGlobalInterceptors() ?? []), ...(config?.getGlobalRequestInterceptors() ?? [])].length > 0;
  }
}

/**
 * The request that happens to open the connection of a microservice must not lend its session to all whose replies come
 * over it: operators of an Observable run where its values come from.
 */
function connectOutside(client: MessageClient): void {
  const connect = AsyncResource.bind(client.connect.bind(client));
  client.connect = () => connect();
}

/** Puts enhancers before the global ones of the application; where the list of Nest is only a copy, behind them. */
function putBefore<Enhancer>(listed: () => Enhancer[], enhancers: readonly Enhancer[], putBehind: () => void): void {
  listed().unshift(...enhancers);
  if (listed().includes(enhancers[0]!)) return;
  putBehind();
  warnings.warn('order', LAST);
}

const UNKNOWN_NEST =
  'This version of NestJS does not keep its guards, interceptors and routes where they are looked for: sessions are ' +
  'saved, but what depends on the decorators of routes may not work. Update the packages of @nest-session';

const SAVED_BY_INTERCEPTOR =
  'This version of NestJS sends responses in another way than known, so an interceptor saves the sessions of all ' +
  'handlers that can have one, which takes a little longer. Update the packages of @nest-session';

const LAST =
  'This version of NestJS puts the guards and interceptors of sessions behind those of the application, so ' +
  '`@KeepSessionIdle()` and `@SessionOutagePolicy()` count only after its guards. Update the packages of @nest-session';
