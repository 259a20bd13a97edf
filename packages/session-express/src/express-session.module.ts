import { type DynamicModule, Inject, Logger, Module, Optional } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { InvalidSessionOptionsError, SessionIdResolver, SessionRepository } from '@nest-session/core';
import { type ResolvedSessionOptions, SESSION_OPTIONS } from '@nest-session/core/store';
import { cookieAttributes, SessionExtension } from '@nest-session/core/transport';
import {
  EXPRESS_SESSION_MODULE_OPTIONS,
  ExpressSessionModuleDefinition,
} from './configuration/express-session.module-definition.js';
import {
  type ExpressSessionModuleOptions,
  resolveExpressSessionOptions,
} from './configuration/express-session.options.js';
import { requestProperties } from './request/request-properties.js';
import { SessionStore } from './request/session.store.js';

/**
 * Gives every request what express-session gives it: `req.session` as a property bag, `req.sessionID` and
 * `req.sessionStore`. Import it once, in the root module, beside `SessionModule` and the module of a store.
 */
@Module({})
export class ExpressSessionModule extends ExpressSessionModuleDefinition {
  /**
   * The module for the imports of the root module. @throws InvalidSessionOptionsError at start, naming all problems of
   * the options
   */
  static override forRoot(options: ExpressSessionModuleOptions = {}): DynamicModule {
    return super.forRoot(options);
  }

  constructor(
    @Inject(EXPRESS_SESSION_MODULE_OPTIONS) options: ExpressSessionModuleOptions,
    @Inject(ModuleRef) moduleRef: ModuleRef,
    // Optional, so that the error names the missing module.
    @Optional() @Inject(SessionExtension) extension?: SessionExtension,
    @Optional() @Inject(SESSION_OPTIONS) session?: ResolvedSessionOptions,
    @Optional() @Inject(SessionIdResolver) resolver?: SessionIdResolver,
  ) {
    super();
    if (!extension || !session || !resolver) throw problem(SESSION_MODULE_MISSING);
    if (extension.properties) throw problem(IMPORTED_TWICE);
    const { unset, saveUninitialized, principal, answers } = resolveExpressSessionOptions(options, session.cookie);
    extension.properties = requestProperties(
      {
        timeout: session.timeout,
        unset,
        saveUninitialized,
        principal,
        lifetimeOf: (client) => resolver.maxAge(client) ?? 0,
        describeCookie: (request) => cookieAttributes(request, session.cookie),
      },
      new SessionStore(() => moduleRef.get<SessionRepository>(SessionRepository, { strict: false })),
    );
    if (answers.length > 0) logger.log(`Options of express-session: ${answers.join('; ')}`);
  }
}

const logger = new Logger('ExpressSession');

function problem(sentence: string): InvalidSessionOptionsError {
  return new InvalidSessionOptionsError('ExpressSessionModule', [sentence]);
}

const SESSION_MODULE_MISSING =
  'SessionModule is missing: add SessionModule.forRoot() to the imports of the root module.';

const IMPORTED_TWICE =
  'It is configured twice in this application: import ExpressSessionModule.forRoot() once, in the root module.';
