import { type BeforeApplicationShutdown, type DynamicModule, Inject, Module, type OnModuleInit } from '@nestjs/common';
import { DiscoveryModule, MetadataScanner, ModuleRef, ModulesContainer } from '@nestjs/core';
import { InvalidSessionOptionsError, SessionRepository } from '@nest-session/core';
import { SESSION_OPTIONS, type ResolvedSessionOptions } from '@nest-session/core/store';
import {
  assertConfiguredOnce,
  ofSessionModule,
  PROVIDER_INDEXES,
  SessionExtension,
  writerOf,
} from '@nest-session/core/internal';
import {
  PROVIDER_LOGOUT_MODULE_OPTIONS,
  ProviderLogoutModuleDefinition,
  type ProviderLogoutModuleOptions,
  resolveProviderLogoutOptions,
} from './configuration/provider-logout.options.js';
import { ProviderSessions } from './endings/provider-sessions.js';
import { MessageHandler } from './endpoints/message-handler.js';
import { ProviderEndpoints } from './endpoints/provider-endpoints.js';
import { ProviderEventDispatcher } from './events/provider-event.dispatcher.js';
import { ProviderSessionEndedError } from './provider-session-ended.error.js';
import { KnownIssuers } from './tokens/known-issuers.js';
import { TokenVerifier } from './tokens/token-verifier.js';

/**
 * Ends sessions when an identity provider says so: by OpenID back-channel logout, and by security events that it
 * pushes. Import it once, in the root module, together with `SessionModule`, and pass the claims of the ID token to
 * `session.signIn(name, { provider: claims })`.
 */
@Module({ imports: [DiscoveryModule], providers: [MetadataScanner, ProviderEventDispatcher] })
export class ProviderLogoutModule
  extends ProviderLogoutModuleDefinition
  implements OnModuleInit, BeforeApplicationShutdown
{
  #endpoints: ProviderEndpoints | undefined;

  /**
   * Returns the module for the imports of the root module.
   * @throws InvalidSessionOptionsError at start, which names all problems of the options
   */
  static override forRoot(options: ProviderLogoutModuleOptions): DynamicModule {
    return super.forRoot(options);
  }

  /** @internal Import it with `forRoot()`. */
  constructor(
    @Inject(PROVIDER_LOGOUT_MODULE_OPTIONS) private readonly options: ProviderLogoutModuleOptions,
    @Inject(ModuleRef) private readonly moduleRef: ModuleRef,
    @Inject(ModulesContainer) modules: ModulesContainer,
    @Inject(ProviderEventDispatcher) private readonly dispatcher: ProviderEventDispatcher,
  ) {
    super();
    assertConfiguredOnce(modules, ProviderLogoutModule, MODULE);
  }

  /** Serves requests from now on. Called by Nest. @throws InvalidSessionOptionsError */
  onModuleInit(): void {
    const options = resolveProviderLogoutOptions(this.options);
    const repository = this.#ofSessions<SessionRepository>(SessionRepository);
    const { indexes, securityEvents } = this.#ofSessions<ResolvedSessionOptions>(SESSION_OPTIONS);
    const sessions = ProviderSessions.in(repository);
    if (!sessions) throw new InvalidSessionOptionsError(MODULE, [NO_MARKS]);
    indexes.add(PROVIDER_INDEXES);
    writerOf(repository).providers = {
      readClaims: (claims) => sessions.readClaims(claims),
      confirm: async (session) => ((await sessions.isOver(session)) ? new ProviderSessionEndedError() : undefined),
    };
    const verifier = new TokenVerifier(new KnownIssuers(options));
    const handler = new MessageHandler(sessions, securityEvents, this.dispatcher);
    this.#endpoints = new ProviderEndpoints(options, verifier, handler, securityEvents);
    this.#ofSessions<SessionExtension>(SessionExtension).serves = this.#endpoints.serves;
  }

  /** Finishes what providers have sent. Called by Nest. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.#endpoints?.close();
  }

  /** @throws InvalidSessionOptionsError without SessionModule, and without a store for it */
  #ofSessions<T>(token: Token): T {
    try {
      return this.moduleRef.get<T>(token, { strict: false });
    } catch {
      return ofSessionModule<T>(undefined, MODULE);
    }
  }
}

type Token = Parameters<ModuleRef['get']>[0];

const MODULE = 'ProviderLogoutModule';

const NO_MARKS =
  'The store of the sessions remembers no logouts: use RedisSessionModule or MapSessionModule, or give your repository ' +
  'indexes, `leaveMark()` and `readMarks()`.';
