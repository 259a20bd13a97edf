import { createParamDecorator, type ExecutionContext, SetMetadata } from '@nestjs/common';
import { ResponseCommit } from '../http/response-commit.js';
import { csrfTokenOf } from './csrf-token.js';
import { httpRequestOf } from './http-request-of.js';

export const SKIP_CSRF = Symbol('SKIP_CSRF');

/**
 * Keeps `CsrfGuard` from checking requests for a handler, or for all handlers of a controller: for webhooks, and for
 * clients that authenticate each request by something else than the session. `SkipCsrf(false)` on a handler overrides
 * its controller.
 */
export function SkipCsrf(skip = true): ClassDecorator & MethodDecorator {
  return SetMetadata(SKIP_CSRF, skip);
}

/**
 * Gives a handler the CSRF token of its session, for a form or a script of the page: see `csrfTokenOf()`. Undefined in a
 * request that the option `exclude` excludes.
 */
export const CsrfToken: () => ParameterDecorator = createParamDecorator((_: unknown, context: ExecutionContext) => {
  const request = httpRequestOf(context);
  const session = request && ResponseCommit.of(request)?.session;
  return session && csrfTokenOf(session.session);
});
