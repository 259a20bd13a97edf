import { UnauthorizedException } from '@nestjs/common';
import { refusalBody } from '@nest-session/core/internal';

/**
 * Thrown by the save of a sign-in with `provider`, when the identity provider has signed the user out while the sign-in
 * was under way. The session has ended, and nobody is signed in. Thrown by `signIn()` itself for claims that are older
 * than an hour, which changes nothing. A 401 response with the reason `provider-session-ended`.
 */
export class ProviderSessionEndedError extends UnauthorizedException {
  constructor() {
    const body = refusalBody('provider-session-ended');
    super(body);
    this.name = 'ProviderSessionEndedError';
    this.message = body.message;
  }
}
