import type { IncomingMessage } from 'node:http';
import {
  type CanActivate,
  createParamDecorator,
  type ExecutionContext,
  ForbiddenException,
  Inject,
  Injectable,
  SetMetadata,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { SESSION_OPTIONS } from '../configuration/session.module-definition.js';
import type { ResolvedSessionOptions } from '../configuration/session.options.js';
import { markRefusal, refusalBody, REFUSALS } from '../errors/refusals.js';
import { type Call, callOf, requestOf } from '../http/call.js';
import { isGuardedBy, OWN_GUARD } from '../http/handler-metadata.js';
import { ResponseCommit } from '../http/response-commit.js';
import { isOriginOf, mayHaveBeenChanged } from '../resolvers/proxied-request.js';
import { csrfTokenOf, isCsrfTokenOf } from './csrf-token.js';

/**
 * Why `CsrfGuard` refused a request:
 * - `'cross-origin'`: a page of another origin sent the request;
 * - `'missing-token'`: the request has no token;
 * - `'invalid-token'`: the token does not belong to the session, for example because the session expired, or because
 *   the user signed in after the page was loaded.
 */
export type CsrfRefusal = 'cross-origin' | 'missing-token' | 'invalid-token';

/** Thrown by `CsrfGuard`. Nest turns it into a 403 response unless an exception filter decides otherwise. */
export class CsrfError extends ForbiddenException {
  constructor(
    /** Why the request was refused. */
    readonly reason: CsrfRefusal,
    message: string = REFUSALS[reason].message,
  ) {
    super(refusalBody(reason, { message }));
    markRefusal(this);
    this.name = 'CsrfError';
  }
}

export const SKIP_CSRF = Symbol('SKIP_CSRF');

/**
 * Exempts a handler, or all of a controller, from `CsrfGuard`: webhooks, and clients that authenticate each request by
 * something else. `SkipCsrf(false)` on a handler overrides its controller, and `@UseGuards(CsrfGuard)` both.
 */
export function SkipCsrf(skip = true): ClassDecorator & MethodDecorator {
  return SetMetadata(SKIP_CSRF, skip);
}

/**
 * Passes a handler the CSRF token of its session, for a form or a script of the page. See `csrfTokenOf()`. The value is
 * undefined in a request that the option `exclude` excludes.
 */
export const CsrfToken: () => ParameterDecorator = createParamDecorator((_: unknown, context: ExecutionContext) => {
  const { commit } = callOf(context);
  return commit && csrfTokenOf(commit.session.session);
});

interface HttpRequest {
  readonly method: string;
  readonly headers: IncomingMessage['headers'];
  readonly body?: unknown;
  /** The host with its port; it takes trusted proxies into account. */
  readonly host?: unknown;
  /** The method that the client sent, if middleware has replaced it. */
  readonly originalMethod?: unknown;
}

// By RFC 9110, 9.2.1, requests with these methods change nothing.
export const SAFE_METHODS: readonly unknown[] = ['GET', 'HEAD', 'OPTIONS', 'TRACE'];

/**
 * Protects against CSRF: a request that may change something must carry the CSRF token of its session, in a header or
 * in a field of its body, and the browser must not report another origin. Use the guard for all routes with `{ provide:
 * APP_GUARD, useExisting: CsrfGuard }`, and mark exceptions with `@SkipCsrf()`.
 */
@Injectable()
@SetMetadata(OWN_GUARD, true)
export class CsrfGuard implements CanActivate {
  /** @internal Inject it. */
  constructor(
    @Inject(Reflector) private readonly reflector: Reflector,
    @Inject(SESSION_OPTIONS)
    private readonly options: Pick<ResolvedSessionOptions, 'cookie' | 'csrf' | 'securityEvents'>,
  ) {}

  /**
   * Returns true, or throws.
   * @throws CsrfError when it refuses the request; SessionStoreError when the session could not be loaded
   */
  canActivate(context: ExecutionContext): boolean {
    const request = httpRequestOf(callOf(context));
    if (!request || isSafe(request) || this.#isExempt(context)) return true;
    try {
      this.#refuseOtherOrigins(request);
      this.#refuseOtherTokens(request);
      return true;
    } catch (error) {
      if (error instanceof CsrfError) this.#report(request, error);
      throw error;
    }
  }

  #isExempt(context: ExecutionContext): boolean {
    const handler = context.getHandler();
    const skips = this.reflector.getAllAndOverride<boolean | undefined>(SKIP_CSRF, [handler, context.getClass()]);
    return skips === true && !isGuardedBy(CsrfGuard, handler);
  }

  #report(request: HttpRequest, { reason }: CsrfError): void {
    const kind = reason === 'cross-origin' ? 'refused-origin' : 'refused-csrf-token';
    const { id, principalName } = ResponseCommit.of(request)?.session.existing ?? {};
    this.options.securityEvents.report(kind, { request: requestOf(request), sessionId: id, principalName, reason });
  }

  #refuseOtherOrigins(request: HttpRequest): void {
    const { csrf, cookie } = this.options;
    if (!isFromOtherOrigin(requestOf(request), request, csrf.trustedOrigins, cookie.secure === true)) return;
    throw new CsrfError('cross-origin', `${REFUSALS['cross-origin'].message}: if it is yours, ${TRUST}`);
  }

  #refuseOtherTokens(request: HttpRequest): void {
    const token = tokenIn(request);
    if (token === undefined) throw new CsrfError('missing-token');
    const held = ResponseCommit.of(request)?.session;
    held?.use();
    // Overrides the outage policy of the handler: without the session, a valid token would look like an invalid one.
    held?.applyOutagePolicy('reject');
    const session = held?.session;
    if (session && typeof token === 'string' && isCsrfTokenOf(session, token)) return;
    // It may be that of the session that lacks its proof.
    held?.requireProof();
    throw new CsrfError('invalid-token');
  }
}

/** Undefined for what comes over a connection: its origin is checked when it opens. */
function httpRequestOf({ kind, request }: Call): HttpRequest | undefined {
  return kind === 'http' || kind === 'graphql' ? (request as HttpRequest | undefined) : undefined;
}

/** Middleware may turn a POST into a GET, so both methods must be safe. */
function isSafe({ method, originalMethod = method }: HttpRequest): boolean {
  return SAFE_METHODS.includes(method) && SAFE_METHODS.includes(originalMethod);
}

/** In one of the headers that client libraries send, or in the field of a form. */
function tokenIn({ headers, body }: HttpRequest): unknown {
  return headers['x-csrf-token'] ?? headers['x-xsrf-token'] ?? fieldOf(body, '_csrf');
}

function fieldOf(body: unknown, name: string): unknown {
  return typeof body === 'object' && body !== null && Object.hasOwn(body, name)
    ? (body as Record<string, unknown>)[name]
    : undefined;
}

/**
 * Whether the browser says that a page of another origin sent the request. A client that says nothing is not a current
 * browser.
 * @param platform the request of the platform, which may be the Node.js request
 */
export function isFromOtherOrigin(
  request: IncomingMessage,
  platform: Pick<HttpRequest, 'host'>,
  trustedOrigins: ReadonlySet<string>,
  isHttpsOnly = false,
): boolean {
  const { origin, host, 'sec-fetch-site': site } = request.headers;
  if (origin !== undefined && trustedOrigins.has(origin)) return false;
  if (isHttpsOnly && origin !== undefined && mayHaveBeenChanged(origin, request)) return true;
  // `none`: the user typed the address. `same-site` is another host of the domain, which is not this application.
  if (site !== undefined) return site !== 'same-origin' && site !== 'none';
  if (origin === undefined) return false;
  return !isOriginOf(origin, request, [host, request.headers[':authority'], platform.host]);
}

const TRUST = 'name its origin in the option `csrf.trustedOrigins`';
