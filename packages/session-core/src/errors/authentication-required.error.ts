import { HttpStatus, UnauthorizedException } from '@nestjs/common';

/**
 * Why `AuthenticatedGuard` refused a request:
 * - `'not-authenticated'`: its session has no signed-in user;
 * - `'not-recently-authenticated'`: the sign-in was too long ago, so the user has to enter the password again.
 */
export type AuthenticationRefusal = 'not-authenticated' | 'not-recently-authenticated';

/** The body of the response. */
interface Response {
  readonly statusCode: HttpStatus.UNAUTHORIZED;
  readonly message: string;
  readonly error: 'Unauthorized';
  readonly reason: AuthenticationRefusal;
  readonly maxAge?: number;
}

/**
 * Thrown by `AuthenticatedGuard`. Nest turns it into a 401 response with `{ statusCode, message, error, reason }`
 * unless an exception filter decides otherwise. If a recent sign-in is required, the body also has `maxAge`, in
 * seconds.
 */
export class AuthenticationRequiredError extends UnauthorizedException {
  constructor(
    /** Why the request was refused. */
    readonly reason: AuthenticationRefusal,
    /** How long ago the sign-in may be, in seconds; undefined if any sign-in will do. */
    readonly maxAge?: number,
  ) {
    const response: Response = {
      statusCode: HttpStatus.UNAUTHORIZED,
      message: MESSAGES[reason],
      error: 'Unauthorized',
      reason,
      ...(maxAge === undefined ? {} : { maxAge }),
    };
    super(response);
    this.name = 'AuthenticationRequiredError';
    this.message = response.message;
  }
}

const MESSAGES: Readonly<Record<AuthenticationRefusal, string>> = {
  'not-authenticated': 'Sign in first',
  'not-recently-authenticated': 'Sign in again',
};
