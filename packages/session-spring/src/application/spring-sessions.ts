import { randomBytes } from 'node:crypto';
import { type CookieOptions, type SessionModuleOptions, SessionTokenGenerator } from '@nest-session/core';
import { SpringCookieSessionIdResolver } from './spring-cookie-session-id.resolver.js';

/**
 * A token is any well-formed text, not only what this draws: Spring draws UUIDs, or what its `SessionIdGenerator`
 * draws.
 */
class SpringTokenGenerator extends SessionTokenGenerator {
  generate(): string {
    return randomBytes(32).toString('base64url');
  }
}

/**
 * Returns the options of `SessionModule` that sessions of Spring Session need: the id is the token, as Spring has it,
 * of 22 to 128 letters, digits, `-` and `_`, and a cookie holds it in Base64 or plain. `cookie`: how the Spring
 * application sets its cookie, by default named `SESSION`.
 * @throws InvalidSessionOptionsError that names all problems of the cookie
 */
export function springSessions(
  cookie?: CookieOptions,
): Required<Pick<SessionModuleOptions, 'sessionIds' | 'sessionIdResolver' | 'sessionTokenGenerator'>> {
  return {
    sessionIds: 'plain',
    sessionIdResolver: new SpringCookieSessionIdResolver(cookie),
    sessionTokenGenerator: new SpringTokenGenerator(),
  };
}
