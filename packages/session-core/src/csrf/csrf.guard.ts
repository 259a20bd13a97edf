import { type CanActivate, type ExecutionContext, Inject, Injectable, SetMetadata } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { SESSION_OPTIONS } from '../configuration/session.module-definition.js';
import type { ResolvedSessionOptions } from '../configuration/session.options.js';
import { isGuardedBy, OWN_GUARD } from '../http/is-guarded-by.js';
import { requestOf } from '../http/request-of.js';
import { ResponseCommit } from '../http/response-commit.js';
import { isCsrfTokenOf } from './csrf-token.js';
import { SKIP_CSRF } from './csrf.decorators.js';
import { CsrfError } from './csrf.error.js';
import { type HttpRequest, httpRequestOf } from './http-request-of.js';
import { isFromOtherOrigin } from './is-from-other-origin.js';

// By RFC 9110, 9.2.1, requests with these methods change nothing.
const SAFE_METHODS: readonly unknown[] = ['GET', 'HEAD', 'OPTIONS', 'TRACE'];

/**
 * Protects against CSRF: refuses requests that a page of another site makes a browser send with the user's session. A
 * request that may change something must carry the CSRF token of its session, in a header or in a field of its body,
 * and the browser must not report another origin. Use the guard for all routes with
 * `{ provide: APP_GUARD, useExisting: CsrfGuard }`, and mark exceptions with `@SkipCsrf()`.
 */
@Injectable()
@SetMetadata(OWN_GUARD, true)
export class CsrfGuard implements CanActivate {
  /** @internal Inject it. */
  constructor(
    @Inject(Reflector) private readonly reflector: Reflector,
    @Inject(SESSION_OPTIONS) private readonly options: Pick<ResolvedSessionOptions, 'csrf' | 'securityEvents'>,
  ) {}

  /**
   * Returns true, or throws.
   * @throws CsrfError when it refuses the request; SessionStoreError when the session could not be loaded
   */
  canActivate(context: ExecutionContext): boolean {
    const request = httpRequestOf(context);
    if (!request || isSafe(request)) return true;
    if (this.#isExempt(context)) return true;
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
    if (!isFromOtherOrigin(requestOf(request), request, this.options.csrf.trustedOrigins)) return;
    throw new CsrfError('cross-origin', 'A page of another origin sent this request');
  }

  #refuseOtherTokens(request: HttpRequest): void {
    const token = tokenIn(request);
    if (token === undefined) throw new CsrfError('missing-token', TOKEN_MISSING);
    const held = ResponseCommit.of(request)?.session;
    held?.use();
    // Overrides the outage policy of the handler: without the session, a valid token would look like an invalid one.
    held?.applyOutagePolicy('reject');
    const session = held?.session;
    if (session && typeof token === 'string' && isCsrfTokenOf(session, token)) return;
    throw new CsrfError('invalid-token', TOKEN_INVALID);
  }
}

/** Middleware may turn a POST into a GET, so both methods must be safe. */
function isSafe({ method, originalMethod = method }: HttpRequest): boolean {
  return SAFE_METHODS.includes(method) && SAFE_METHODS.includes(originalMethod);
}

/** In one of the headers that client libraries send, or in the field of a form. */
function tokenIn({ headers, body }: HttpRequest): unknown {
  return headers['x-csrf-token'] ?? headers['x-xsrf-token'] ?? fieldOf(body, '_csrf');
}

const TOKEN_INVALID = 'The CSRF token does not belong to the session: load the page again';

const TOKEN_MISSING = 'The CSRF token is missing: send it in the header X-CSRF-Token or in the field _csrf';

function fieldOf(body: unknown, name: string): unknown {
  return typeof body === 'object' && body !== null && Object.hasOwn(body, name)
    ? (body as Record<string, unknown>)[name]
    : undefined;
}
