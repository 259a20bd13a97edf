import { UnauthorizedException } from '@nestjs/common';
import { markRefusal, refusalBody } from './refusals.js';

/**
 * Why `AuthenticatedGuard` refused a request:
 * - `'not-authenticated'`: its session has no signed-in user;
 * - `'not-recently-authenticated'`: the sign-in was too long ago, so the user has to enter the password again;
 * - `'device-proof-missing'`: its session is bound to a browser, and the request does not prove that it comes from
 *   there.
 */
export type AuthenticationRefusal = 'not-authenticated' | 'not-recently-authenticated' | 'device-proof-missing';

/**
 * Thrown by `AuthenticatedGuard`: a 401 response with `{ statusCode, message, error, reason }` and, if a recent sign-in
 * is required, `maxAge` in seconds.
 */
export class AuthenticationRequiredError extends UnauthorizedException {
  constructor(
    /** Why the request was refused. */
    readonly reason: AuthenticationRefusal,
    /** How long ago the sign-in may be, in seconds; undefined if any sign-in will do. */
    readonly maxAge?: number,
  ) {
    super(refusalBody(reason, maxAge === undefined ? {} : { maxAge }));
    markRefusal(this);
    this.name = 'AuthenticationRequiredError';
  }
}
