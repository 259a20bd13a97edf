import { ForbiddenException } from '@nestjs/common';

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
    message: string,
  ) {
    super(message);
    this.name = 'CsrfError';
  }
}
