import type { IncomingMessage } from 'node:http';
import { type CanActivate, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { SESSION_OPTIONS } from '../configuration/session.module-definition.js';
import type { ResolvedSessionOptions } from '../configuration/session.options.js';
import { SessionExchange } from '../http/session-exchange.js';
import { isCsrfTokenOf } from './csrf-token.js';
import { SKIP_CSRF } from './csrf.decorators.js';
import { CsrfError } from './csrf.error.js';
import { type HttpRequest, httpRequestOf } from './http-request-of.js';
import { isFromOtherOrigin } from './is-from-other-origin.js';

// Requests that change nothing, by RFC 9110, 9.2.1. Any other method may.
const SAFE_METHODS: readonly unknown[] = ['GET', 'HEAD', 'OPTIONS', 'TRACE'];

/**
 * Refuses requests that a page of another site makes a browser send with the session of its user. A request that may
 * change something has to come from the application's own origin, as far as the browser says, and to carry the CSRF
 * token of its session, in a header or in a field of its body. Use it for all routes:
 * `{ provide: APP_GUARD, useExisting: CsrfGuard }`, and `@SkipCsrf()` for exceptions.
 */
@Injectable()
export class CsrfGuard implements CanActivate {
  /** @internal Inject it. */
  constructor(
    @Inject(Reflector) private readonly reflector: Reflector,
    @Inject(SESSION_OPTIONS) private readonly options: Pick<ResolvedSessionOptions, 'csrf' | 'securityEvents'>,
  ) {}

  /**
   * Whether a request may go on: always, or it throws.
   * @throws CsrfError for a request that is refused; SessionStoreError when the session could not be loaded
   */
  canActivate(context: ExecutionContext): boolean {
    const request = httpRequestOf(context);
    if (!request || isSafe(request)) return true;
    const route = [context.getHandler(), context.getClass()];
    if (this.reflector.getAllAndOverride<boolean | undefined>(SKIP_CSRF, route)) return true;
    try {
      this.#refuseOtherOrigins(request);
      this.#refuseOtherTokens(request);
    } catch (error) {
      if (error instanceof CsrfError) this.#report(request, error);
      throw error;
    }
    return true;
  }

  #report(request: HttpRequest, { reason }: CsrfError): void {
    const kind = reason === 'cross-origin' ? 'refused-origin' : 'refused-csrf-token';
    const { id, principalName } = SessionExchange.of(request)?.session.existing ?? {};
    this.options.securityEvents.report(kind, { request: rawOf(request), sessionId: id, principalName, reason });
  }

  #refuseOtherOrigins(request: HttpRequest): void {
    if (!isFromOtherOrigin(rawOf(request), request, this.options.csrf.trustedOrigins)) return;
    throw new CsrfError('cross-origin', 'A page of another origin sent this request');
  }

  #refuseOtherTokens(request: HttpRequest): void {
    const token = tokenIn(request);
    if (token === undefined) throw new CsrfError('missing-token', TOKEN_MISSING);
    const session = SessionExchange.of(request)?.session.session;
    if (session && typeof token === 'string' && isCsrfTokenOf(session, token)) return;
    throw new CsrfError('invalid-token', 'The CSRF token is not that of the session: load the page again');
  }
}

function rawOf(request: HttpRequest): IncomingMessage {
  return request.raw ?? (request as unknown as IncomingMessage);
}

/** Middleware may make a GET of a POST: then neither of the two may change something. */
function isSafe({ method, originalMethod = method }: HttpRequest): boolean {
  return SAFE_METHODS.includes(method) && SAFE_METHODS.includes(originalMethod);
}

/** In one of the headers that client libraries send, or in the field of a form. */
function tokenIn({ headers, body }: HttpRequest): unknown {
  return headers['x-csrf-token'] ?? headers['x-xsrf-token'] ?? fieldOf(body, '_csrf');
}

const TOKEN_MISSING = 'The CSRF token is missing: send it in the header X-CSRF-Token or in the field _csrf';

function fieldOf(body: unknown, name: string): unknown {
  return typeof body === 'object' && body !== null && Object.hasOwn(body, name)
    ? (body as Record<string, unknown>)[name]
    : undefined;
}
