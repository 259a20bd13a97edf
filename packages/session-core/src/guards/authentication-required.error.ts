import { HttpStatus, UnauthorizedException } from '@nestjs/common';

/**
 * Why `AuthenticatedGuard` refused a request:
 * - `'not-authenticated'`: nobody is signed in in its session;
 * - `'not-recently-authenticated'`: the sign-in is too long ago, so the user has to give the password again.
 */
export type AuthenticationRefusal = 'not-authenticated' | 'not-recently-authenticated';

/** What the client is told. */
interface Response {
  readonly statusCode: HttpStatus.UNAUTHORIZED;
  readonly message: string;
  readonly error: 'Unauthorized';
  readonly reason: AuthenticationRefusal;
  readonly maxAge?: number;
}

/**
 * Thrown by `AuthenticatedGuard`. Nest answers this HTTP exception with 401 and `{ statusCode, message, error, reason }`
 * unless an exception filter decides otherwise; with `maxAge`, in seconds, where a recent sign-in is required.
 */
export class AuthenticationRequiredError extends UnauthorizedException {
  constructor(
    /** Why the request was refused. */
    readonly reason: AuthenticationRefusal,
    /** How long ago the sign-in may be, in seconds; undefined where any sign-in will do. */
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
