import { type DynamicModule, Global, Inject, Module, type NestModule } from '@nestjs/common';
import { DiscoveryModule, MetadataScanner, ModuleRef, ModulesContainer } from '@nestjs/core';
import { CsrfGuard } from './csrf/csrf.guard.js';
import { UncalledMethodsCheck } from './events/uncalled-methods.check.js';
import { InvalidSessionOptionsError } from './errors/session.errors.js';
import { AuthenticatedGuard, GuardedFieldsCheck } from './guards/authenticated.guard.js';
import { SessionEventModule } from './events/session-event.module.js';
import { GuardedConnections, OpenConnections, SessionEndListener } from './http/open-connections.js';
import { RememberMe } from './http/remember-me.js';
import { RequestSessions } from './http/request-sessions.js';
import { RouteExplorer } from './http/route.explorer.js';
import { SessionEnhancers } from './http/session-enhancers.js';
import { SessionExtension } from './http/session-extension.js';
import { SessionContext, SessionScope } from './http/session.scope.js';
import { Sessions } from './http/sessions.js';
import { SessionMiddleware } from './http/session.middleware.js';
import { assertOneStore, importedAsClass } from './option-reading/injected-dependencies.js';
import { SessionRepository } from './repository/session.repository.js';
import { SessionIdResolver } from './resolvers/session-id.resolver.js';
import { SecurityEventDispatcher } from './security-events/security-event.dispatcher.js';
import { SecurityEvents } from './security-events/security-events.js';
import { BrowserSessions } from './http/browser-sessions.js';
import { SessionInterceptor } from './http/session.interceptor.js';
import {
  SESSION_MODULE_OPTIONS,
  SESSION_OPTIONS,
  SessionModuleDefinition,
} from './configuration/session.module-definition.js';
import { strictResolverProblems } from './option-reading/strict-security.js';
import {
  type ResolvedSessionOptions,
  resolveSessionOptions,
  type SessionModuleOptions,
} from './configuration/session.options.js';

/**
 * Gives every HTTP request of the application its session. Import it once, in the root module, together with the module
 * of a store. It is global.
 */
@Global()
@Module({
  imports: [DiscoveryModule, SessionEventModule],
  providers: [
    // `forRoot()` and `forRootAsync()` replace it.
    { provide: SESSION_MODULE_OPTIONS, useFactory: refuseBareClass },
    {
      provide: SESSION_OPTIONS,
      inject: [SESSION_MODULE_OPTIONS],
      useFactory: (options: SessionModuleOptions) => resolveSessionOptions(options),
    },
    {
      provide: SessionIdResolver,
      inject: [SESSION_OPTIONS, ModuleRef],
      useFactory: createResolver,
    },
    {
      provide: SecurityEvents,
      inject: [SESSION_OPTIONS],
      useFactory: ({ securityEvents }: ResolvedSessionOptions) => securityEvents,
    },
    SecurityEventDispatcher,
    SessionScope,
    SessionExtension,
    SessionContext,
    BrowserSessions,
    RememberMe,
    CsrfGuard,
    AuthenticatedGuard,
    OpenConnections,
    SessionEndListener,
    GuardedConnections,
    RequestSessions,
    Sessions,
    SessionMiddleware,
    SessionInterceptor,
    MetadataScanner,
    RouteExplorer,
    SessionEnhancers,
    GuardedFieldsCheck,
    UncalledMethodsCheck,
  ],
  exports: [
    SESSION_OPTIONS,
    SessionIdResolver,
    SessionScope,
    SessionExtension,
    SessionContext,
    BrowserSessions,
    RememberMe,
    CsrfGuard,
    AuthenticatedGuard,
    RequestSessions,
    Sessions,
    SessionInterceptor,
    SessionEventModule,
  ],
})
export class SessionModule extends SessionModuleDefinition implements NestModule {
  /**
   * Returns the module for the imports of the root module.
   * @throws InvalidSessionOptionsError at start, which names all problems of the options
   */
  static override forRoot(options: SessionModuleOptions = {}): DynamicModule {
    return super.forRoot(options);
  }

  /** @internal Import it with `forRoot()`. */
  constructor(
    @Inject(SessionEnhancers) private readonly enhancers: SessionEnhancers,
    @Inject(ModulesContainer) modules: ModulesContainer,
  ) {
    super();
    assertOneStore(modules, SessionRepository, 'SessionModule', 'sessions');
  }

  /** Puts the interceptor and the guard of sessions where the application needs them. Called by Nest. */
  configure(): Promise<void> {
    return this.enhancers.install();
  }
}

async function createResolver(options: ResolvedSessionOptions, moduleRef: ModuleRef): Promise<SessionIdResolver> {
  const { sessionIdResolver, security } = options;
  if (typeof sessionIdResolver !== 'function') return sessionIdResolver;
  const resolver = await moduleRef.create(sessionIdResolver);
  // The other resolvers were checked with the options.
  const problems = security === 'strict' ? [...strictResolverProblems(resolver)] : [];
  if (problems.length > 0) throw new InvalidSessionOptionsError('SessionModule', problems);
  return resolver;
}

function refuseBareClass(): never {
  throw importedAsClass('SessionModule');
}
