import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type CookieOptions,
  CookieSessionIdResolver,
  type SessionClient,
  type SessionModuleOptions,
  SessionToken,
  SessionTokenGenerator,
  sessionTokenOf,
  type TokenRefusalListener,
} from '@nest-session/core';

/** Draws our tokens. Spring draws UUIDs, or what its `SessionIdGenerator` draws. */
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

/**
 * Carries the id of a session of Spring Session in its cookie, by default `SESSION`. It reads the id as Spring Boot
 * writes it, in Base64, and plain, as with `useBase64Encoding = false`. It sends Base64.
 */
export class SpringCookieSessionIdResolver extends CookieSessionIdResolver {
  constructor(options?: CookieOptions) {
    super({ name: 'SESSION', ...options });
  }

  override resolve(request: IncomingMessage, onRefused?: TokenRefusalListener): SessionToken[] {
    const tokens = super.resolve(withoutPadding(request), onRefused).map(decoded);
    // An id may be there in both forms.
    return [...new Map(tokens.map((token) => [token.reveal(), token])).values()];
  }

  override send(request: IncomingMessage, response: ServerResponse, token: SessionToken, client: SessionClient): void {
    super.send(request, response, new SessionToken(toBase64(token.reveal())), client);
  }
}

/** Java pads the Base64 of an id whose length is no multiple of 3, and a token has no `=`. */
function withoutPadding(request: IncomingMessage): IncomingMessage {
  const { cookie } = request.headers;
  if (typeof cookie !== 'string') return request;
  const plain = cookie.replace(PADDED, (text: string, value: string) => (text.length % 4 === 0 ? value : text));
  if (plain === cookie) return request;
  return Object.create(request, { headers: { value: { ...request.headers, cookie: plain } } }) as IncomingMessage;
}

const PADDED = /(?<==)([\w-]+)={1,2}(?=\s*(?:;|$))/g;

/** Another token that is Base64 of a well-formed one is as unlikely as guessing one. */
function decoded(token: SessionToken): SessionToken {
  const text = token.reveal();
  const id = Buffer.from(text, 'base64').toString('latin1');
  return (toBase64(id) === text && sessionTokenOf(id)) || token;
}

/** Without padding, which Java can do without. */
function toBase64(id: string): string {
  return Buffer.from(id, 'latin1').toString('base64').replace(/=+$/, '');
}
