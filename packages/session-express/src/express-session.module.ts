import {
  ConfigurableModuleBuilder,
  type DynamicModule,
  type HttpServer,
  Inject,
  Module,
  type OnModuleInit,
  Optional,
} from '@nestjs/common';
import { HttpAdapterHost, ModuleRef } from '@nestjs/core';
import {
  ApplicationSerializer,
  explainInjection,
  ForeignSessions,
  type ResolvedCookieOptions,
  SessionExtension,
} from '@nest-session/core/internal';
import {
  InvalidSessionOptionsError,
  type Session,
  SessionIdResolver,
  SessionRepository,
  Sessions,
} from '@nest-session/core';
import { type ResolvedSessionOptions, SESSION_OPTIONS } from '@nest-session/core/store';
import {
  type ExpressSessionModuleOptions,
  type ResolvedExpressSessionOptions,
  resolveExpressSessionOptions,
} from './express-session.options.js';
import type { CookieDescription } from './bag/session-cookie.js';
import { logger, warnOnce } from './express-session.logger.js';
import type { BagSettings } from './bag/session-bag.js';
import { type NoPrincipalReason, type NoPrincipalReport, SessionPrincipals } from './principal/session-principals.js';
import { clearedCookieCheck, CookieCheck } from './request/cookie-checks.js';
import { RequestBags, requestProperties, SessionStore } from './request/request-bags.js';
import { ExpressSessionSerializer } from './express-session.serializer.js';
import { ConnectRedisTakeover, tokenOf } from './connect-redis-takeover.js';

/** The interface of a class for `forRootAsync({ useClass })` or `useExisting`. */
export interface ExpressSessionOptionsFactory {
  /** Returns the options of `ExpressSessionModule`, or a promise of them. Called once, at start. */
  createExpressSessionOptions(): ExpressSessionModuleOptions | Promise<ExpressSessionModuleOptions>;
}

const {
  ConfigurableModuleClass: ExpressSessionModuleDefinition,
  MODULE_OPTIONS_TOKEN: EXPRESS_SESSION_MODULE_OPTIONS,
} = new ConfigurableModuleBuilder<ExpressSessionModuleOptions>({ moduleName: 'ExpressSession' })
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createExpressSessionOptions')
  .setExtras({}, (definition) => explainInjection('ExpressSessionModule', definition))
  .build();

/**
 * Adds the properties of express-session to every request: `req.session` as a property bag, `req.sessionID` and
 * `req.sessionStore`. Import it once, in the root module, together with `SessionModule` and the module of a store.
 */
@Module({})
export class ExpressSessionModule extends ExpressSessionModuleDefinition implements OnModuleInit {
  /**
   * Returns the module for the imports of the root module.
   * @throws InvalidSessionOptionsError at start, which names all problems of the options
   */
  static override forRoot(options: ExpressSessionModuleOptions = {}): DynamicModule {
    return super.forRoot(options);
  }

  readonly #options: ResolvedExpressSessionOptions;
  readonly #extension: SessionExtension;

  /** @internal Import it with `forRoot()`. */
  constructor(
    @Inject(EXPRESS_SESSION_MODULE_OPTIONS) options: ExpressSessionModuleOptions,
    @Inject(ModuleRef) private readonly moduleRef: ModuleRef,
    // Optional, so that our own error names the missing module.
    @Optional() @Inject(SessionExtension) extension?: SessionExtension,
    @Optional() @Inject(SESSION_OPTIONS) session?: ResolvedSessionOptions,
    @Optional() @Inject(SessionIdResolver) resolver?: SessionIdResolver,
  ) {
    super();
    if (!extension || !session || !resolver) throw problem(SESSION_MODULE_MISSING);
    if (extension.properties) throw problem(IMPORTED_TWICE);
    this.#extension = extension;
    this.#options = resolveExpressSessionOptions(options, session.cookie);
    const serializer = ApplicationSerializer.of(session);
    if (serializer) serializer.byDefault = new ExpressSessionSerializer();
    const { unset, saveUninitialized, principal, secrets } = this.#options;
    if (secrets[0] !== undefined && session.ids.find(tokenOf('', secrets)) === undefined) {
      throw problem(TOKENS_REFUSED);
    }
    const { cookie } = session;
    const settings: BagSettings = {
      unset,
      saveUninitialized,
      // The page of devices compares the id with those that `Sessions` lists.
      tellOfId: () => void (secrets.length > 0 && !extension.listsSessions && warnOnce(IDS_KEPT)),
      timeoutOf: (name) => (name === undefined ? session.anonymousTimeout : session.timeout),
      lifetimeOf: (client) => resolver.maxAge(client) ?? 0,
      describeCookie: (request) => (request && resolver.cookieFor(request)) ?? cookieOfAll(cookie),
    };
    const bags = new RequestBags(settings, principal?.passportKeys);
    const store = new SessionStore(
      settings,
      () => moduleRef.get<SessionRepository>(SessionRepository, { strict: false }),
      (id) => moduleRef.get(Sessions, { strict: false }).end(id),
    );
    const check = new CookieCheck(resolver);
    extension.properties = requestProperties(bags, store);
    const isAdmitted = session.maxSessions?.whenReached !== 'refuse';
    const principals = principal && new SessionPrincipals(principal, noPrincipalReport(session), isAdmitted);
    extension.rule = principals;
    extension.excludes = (request) => check.excludes(request);
    extension.withholds = (request) => check.withholds(request);
    extension.beforeResponse = (each) => {
      principals?.adopt(each);
      return bags.beforeResponse(each);
    };
    const checkCleared = clearedCookieCheck(this.#options.name);
    extension.beforeHeaders = ({ existing }, response) => checkCleared(existing, response);
    // The bag has all members of `Session`, so `@Session()` passes it to handlers of HTTP requests.
    extension.shown = (session) => bags.showing(session)?.bag as Session | undefined;
  }

  /** Called by Nest. @throws InvalidSessionOptionsError for an untrusted proxy, or a takeover that the store refuses */
  onModuleInit(): void {
    const { answers, needsProxy, secrets } = this.#options;
    const { httpAdapter } = this.moduleRef.get(HttpAdapterHost, { strict: false });
    if (needsProxy && !trustsProxies(httpAdapter)) throw problem(PROXY_NOT_TRUSTED);
    if (answers.length > 0) logger.log(`Options of express-session: ${answers.join('; ')}`);
    if (secrets.length === 0) return;
    const sessions = this.#findForeignSessions();
    if (sessions?.refusal !== undefined) throw problem(`Option \`secret\` takes over nothing: ${sessions.refusal}`);
    if (sessions) this.#extension.takeover = new ConnectRedisTakeover(this.#options, sessions);
    else logger.warn(NOTHING_TO_TAKE_OVER);
  }

  #findForeignSessions(): ForeignSessions | undefined {
    try {
      return this.moduleRef.get<ForeignSessions>(ForeignSessions, { strict: false });
    } catch {
      return undefined;
    }
  }
}

/** Whether the platform trusts a proxy. True without a platform, which has no requests that could come by one. */
function trustsProxies(platform: HttpServer | undefined): boolean {
  const instance: unknown = platform?.getInstance();
  if (!instance) return true;
  switch (platform?.getType()) {
    case 'express':
      return Boolean((instance as { get(setting: string): unknown }).get('trust proxy'));
    case 'fastify':
      return Boolean(optionsOf(instance)?.trustProxy);
    default:
      return false;
  }
}

/** The options of an instance of Fastify, which shows `trustProxy` nowhere else. */
function optionsOf(instance: object): { readonly trustProxy?: unknown } | undefined {
  const key = Object.getOwnPropertySymbols(instance).find(({ description }) => description === 'fastify.options');
  return key && (instance as Record<symbol, { readonly trustProxy?: unknown }>)[key];
}

function cookieOfAll(cookie: ResolvedCookieOptions): CookieDescription {
  const { path, domain, httpOnly, secure, sameSite, partitioned } = cookie;
  const others = { path, httpOnly, secure: secure === true, sameSite, partitioned };
  return typeof domain === 'string' ? { ...others, domain } : others;
}

/** Reports each reason once: every login of such an application has it. */
function noPrincipalReport({ securityEvents }: ResolvedSessionOptions): NoPrincipalReport {
  const reported = new Set<NoPrincipalReason>();
  return (reason, request, sessionId) => {
    if (reported.has(reason)) return;
    reported.add(reason);
    if (securityEvents.report('passport-no-principal', { request, sessionId, reason })) return;
    logger.warn(`passport-no-principal: ${NO_PRINCIPAL[reason]} This is logged once`);
  };
}

const NO_PRINCIPAL: Readonly<Record<NoPrincipalReason, string>> = {
  'no-id':
    'a user has signed in by Passport who is nobody here, because what Passport keeps in the session has no `id`, `_id` or ' +
    '`sub`. So @Authenticated() refuses the user, and Sessions.endAll() does not reach the session. Set the option ' +
    '`principal` of ExpressSessionModule.forRoot(), such as (session) => session.passport?.user?.email.',
  'not-by-passport':
    'a user stands where Passport keeps its own, and Passport did not write it there, so it is not stored and signs ' +
    'nobody in: a client may have chosen it, as by Object.assign(req.session, body). If code of yours wrote it, call ' +
    'req.session.signIn(name) or use another property. If the application does not use Passport, set the option ' +
    '`principal` of ExpressSessionModule.forRoot() to false or to a function.',
};

function problem(sentence: string): InvalidSessionOptionsError {
  return new InvalidSessionOptionsError('ExpressSessionModule', [sentence]);
}

const IDS_KEPT =
  'The application reads req.sessionID or req.session.id. If it keeps ids to end sessions later, as by redis.del("sess:" + id), ' +
  'this ends nothing any more: call Sessions.endAll(name) of @nest-session/core for a user. Sessions.end(id) takes kept ids, ' +
  'too, but finds no session that has another id since a login. This is logged once, and only while the option `secret` is set';

const SESSION_MODULE_MISSING =
  'SessionModule is missing: add SessionModule.forRoot() to the imports of the root module.';

const IMPORTED_TWICE =
  'It is configured twice in this application: import ExpressSessionModule.forRoot() once, in the root module.';

const PROXY_NOT_TRUSTED =
  'Option `proxy` is a setting of the platform: remove it, and call app.set("trust proxy", 1) before the application ' +
  'listens, or set `trustProxy` of the FastifyAdapter.';

const TOKENS_REFUSED =
  'Option `secret` needs a `sessionTokenGenerator` in SessionModule.forRoot() whose canHaveDrawn() accepts the ' +
  'tokens of sessions that are taken over. They are 43 letters, digits, "-" and "_".';

const NOTHING_TO_TAKE_OVER =
  'The sessions of express-session are not taken over, because only RedisSessionModule can read and keep the ' +
  'sessions of connect-redis: import it, or remove the option `secret`';
