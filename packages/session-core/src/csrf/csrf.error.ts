import { ForbiddenException } from '@nestjs/common';

/**
 * Why `CsrfGuard` refused a request:
 * - `'cross-origin'`: a page of another origin sent it;
 * - `'missing-token'`: it has no token;
 * - `'invalid-token'`: its token is not that of the session, for instance because the session expired, or because the
 *   user signed in after the page was loaded.
 */
export type CsrfRefusal = 'cross-origin' | 'missing-token' | 'invalid-token';

/** Thrown by `CsrfGuard`. Nest answers this HTTP exception with 403 unless an exception filter decides otherwise. */
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
