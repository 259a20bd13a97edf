import { HttpStatus, UnauthorizedException } from '@nestjs/common';

/**
 * Thrown by the save of a sign-in with `provider`, when the identity provider has signed the user out while the sign-in
 * was under way. The session has ended, and nobody is signed in; a 401 response with the reason
 * `provider-session-ended`.
 */
export class ProviderSessionEndedError extends UnauthorizedException {
  constructor() {
    const message = 'The identity provider has ended the login: sign in again';
    super({
      statusCode: HttpStatus.UNAUTHORIZED,
      message,
      error: 'Unauthorized',
      reason: 'provider-session-ended',
    });
    this.name = 'ProviderSessionEndedError';
    this.message = message;
  }
}
