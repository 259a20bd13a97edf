import { createParamDecorator, type ExecutionContext, SetMetadata } from '@nestjs/common';
import { ResponseCommit } from '../http/response-commit.js';
import { csrfTokenOf } from './csrf-token.js';
import { httpRequestOf } from './http-request-of.js';

export const SKIP_CSRF = Symbol('SKIP_CSRF');

/**
 * Exempts a handler, or all handlers of a controller, from `CsrfGuard`. Use it for webhooks, and for clients that
 * authenticate each request by something other than the session. `SkipCsrf(false)` on a handler overrides its
 * controller. `@UseGuards(CsrfGuard)` on a handler outweighs both.
 */
export function SkipCsrf(skip = true): ClassDecorator & MethodDecorator {
  return SetMetadata(SKIP_CSRF, skip);
}

/**
 * Passes a handler the CSRF token of its session, for a form or a script of the page. See `csrfTokenOf()`. The value is
 * undefined in a request that the option `exclude` excludes.
 */
export const CsrfToken: () => ParameterDecorator = createParamDecorator((_: unknown, context: ExecutionContext) => {
  const request = httpRequestOf(context);
  const session = request && ResponseCommit.of(request)?.session;
  return session && csrfTokenOf(session.session);
});
