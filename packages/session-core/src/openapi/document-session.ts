import type { INestApplicationContext, Type } from '@nestjs/common';
import { ApplicationConfig, Reflector } from '@nestjs/core';
import { ApiResponse, ApiSecurity, type DocumentBuilder } from '@nestjs/swagger';
import { SESSION_OPTIONS } from '../configuration/session.module-definition.js';
import type { ResolvedSessionOptions } from '../configuration/session.options.js';
import { CsrfGuard, SAFE_METHODS, SKIP_CSRF } from '../csrf/csrf.guard.js';
import { DEVICE_BOUND } from '../device/device-bound.guard.js';
import { REFUSALS } from '../errors/refusals.js';
import { AuthenticatedGuard } from '../guards/authenticated.guard.js';
import { isGuardedBy, keysOnMethod, requestMethodOf } from '../http/handler-metadata.js';
import { AUTHENTICATION, PUBLIC } from '../http/revocation.js';
import { RouteExplorer, type SessionRoute } from '../http/route.explorer.js';
import { SessionIdResolver } from '../resolvers/session-id.resolver.js';

const RESPONSES = {
  401: 'Nobody is signed in, or not recently enough',
  403: 'The CSRF token is missing or wrong, or the session is not bound to this browser',
  409: 'The session has ended or changed in the meantime, or others change it too often: repeat the request',
  413: 'The session would hold too much',
  429: 'Too many new sessions',
  503: 'The store of the sessions cannot be reached, or does not reply in time',
} as const;

// Where @nestjs/swagger keeps what a route says itself.
const [RESPONSES_KEY] = keysOnMethod(ApiResponse({ status: 503 }) as MethodDecorator);

type Status = keyof typeof RESPONSES;

function schemaOf(status: Status) {
  const reasons = Object.values(REFUSALS).filter(({ statusCode }) => statusCode === status);
  return {
    type: 'object',
    required: ['statusCode', 'message'],
    properties: {
      statusCode: { type: 'integer' },
      message: { type: 'string' },
      error: { type: 'string' },
      reason: { type: 'string', enum: reasons.map(({ reason }) => reason), description: 'For programs' },
      maxAge: { type: 'integer', description: 'How many seconds ago the sign-in may be' },
    },
    example: { statusCode: status, message: RESPONSES[status] },
  };
}

/**
 * Tells OpenAPI of sessions: how a request carries the token, and which routes need a login or may respond with 401,
 * 403, 409, 413, 429 or 503. Call it before `SwaggerModule.createDocument()`. What a route says of these responses
 * itself stays.
 * @param builder gets the security schemes `session`, or one for each way in which the token may come
 * @param app the application, after `NestFactory.create()`
 * @returns the builder
 */
export function documentSession<Builder extends DocumentBuilder>(
  builder: Builder,
  app: INestApplicationContext,
): Builder {
  const options = app.get<ResolvedSessionOptions>(SESSION_OPTIONS, { strict: false });
  const schemes = app.get(SessionIdResolver, { strict: false }).carriers.map((carrier, i) => {
    const name = i === 0 ? 'session' : `session-${i + 1}`;
    builder.addSecurity(name, { type: 'apiKey', ...carrier });
    return name;
  });
  const rules = new RouteRules(app, options);
  for (const route of app.get(RouteExplorer, { strict: false }).sessionRoutes()) {
    const { controller, name, method } = route;
    const document = (decorate: MethodDecorator) => decorate(controller.prototype as object, name, { value: method });
    const statuses = rules.statusesOf(route);
    const own = (Reflect.getMetadata(RESPONSES_KEY, method) ?? {}) as object;
    for (const status of statuses.filter((each) => !(each in own))) {
      document(ApiResponse({ status, description: RESPONSES[status], schema: schemaOf(status) }));
    }
    if (statuses.includes(401)) for (const scheme of schemes) document(ApiSecurity(scheme));
  }
  return builder;
}

/** Which responses a route may give, by its decorators, the global guards and the options. */
class RouteRules {
  readonly #reflector = new Reflector();
  readonly #globalGuards: readonly object[];

  constructor(
    app: INestApplicationContext,
    private readonly options: ResolvedSessionOptions,
  ) {
    const config = app.get(ApplicationConfig, { strict: false });
    this.#globalGuards = config.getGlobalGuards();
  }

  statusesOf(route: SessionRoute): Status[] {
    const { canHaveSession } = route;
    const [needsLogin, mayRefuse] = [this.#needsLogin(route), this.#mayRefuse(route)];
    const applies: Record<Status, boolean> = {
      401: needsLogin,
      403: mayRefuse,
      409: canHaveSession,
      413: canHaveSession,
      429: canHaveSession && this.options.mayCreate !== undefined,
      503: canHaveSession || needsLogin || mayRefuse,
    };
    const statuses = Object.keys(RESPONSES).map(Number) as Status[];
    return statuses.filter((status) => applies[status]);
  }

  #needsLogin({ method, controller }: SessionRoute): boolean {
    const rule = this.#mark(AUTHENTICATION, method, controller);
    if (isGuardedBy(AuthenticatedGuard, method) || this.#isBound(method, controller)) return true;
    return rule !== PUBLIC && (isGuardedBy(AuthenticatedGuard, controller) || this.#isGlobal(AuthenticatedGuard));
  }

  #mayRefuse({ method, controller }: SessionRoute): boolean {
    if (this.#isBound(method, controller) && this.options.deviceBound?.mode === 'enforce') return true;
    if (SAFE_METHODS.includes(requestMethodOf(method))) return false;
    if (isGuardedBy(CsrfGuard, method)) return true;
    const isGuarded = isGuardedBy(CsrfGuard, controller) || this.#isGlobal(CsrfGuard);
    return isGuarded && this.#mark(SKIP_CSRF, method, controller) !== true;
  }

  #isBound(method: object, controller: Type): boolean {
    return this.#mark(DEVICE_BOUND, method, controller) === true;
  }

  #isGlobal(guard: Type): boolean {
    return this.#globalGuards.some((each) => each instanceof guard);
  }

  #mark(key: symbol, method: object, controller: Type): unknown {
    return this.#reflector.getAllAndOverride<unknown>(key, [method as Type, controller]);
  }
}
