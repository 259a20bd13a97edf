import type { IncomingMessage, ServerResponse } from 'node:http';
import { InvalidSessionOptionsError } from '../errors/session.errors.js';
import type { SecurityLevel } from '../option-reading/strict-security.js';
import type { SessionToken } from '../session/session-token.js';
import type { SetCookieAttributes } from './cookie.options.js';
import {
  type DeviceCookie,
  MOST_TOKENS,
  type SessionClient,
  SessionIdResolver,
  type TokenRefusalListener,
  type TokenCarrier,
} from './session-id.resolver.js';

// Reserves room for each resolver that follows, so that cookies planted for the first cannot hide the token of the
// last.
const KEPT_FREE = 5;

/**
 * Combines several resolvers, such as a header for API clients and a cookie for browsers. All read requests, in their
 * order. That whose token opened the session writes the response, else that of the first token, else the first.
 */
export class CompositeSessionIdResolver extends SessionIdResolver {
  readonly headers: readonly string[];
  readonly #resolvers: readonly [SessionIdResolver, ...SessionIdResolver[]];
  readonly #finders = new WeakMap<SessionToken, SessionIdResolver>();

  /**
   * Tries the resolvers in their order. New clients get their token from the first one.
   * @throws InvalidSessionOptionsError without any resolver
   */
  constructor(...resolvers: SessionIdResolver[]) {
    super();
    const [first, ...others] = resolvers;
    if (!first || !resolvers.every((each) => each instanceof SessionIdResolver)) {
      const problem = 'It needs at least one resolver: write new CompositeSessionIdResolver(first, second).';
      throw new InvalidSessionOptionsError('CompositeSessionIdResolver', [problem]);
    }
    this.#resolvers = [first, ...others];
    this.headers = [...new Set(resolvers.flatMap(({ headers }) => headers))];
  }

  /** @internal */
  override get carriers(): readonly TokenCarrier[] {
    return this.#resolvers.flatMap(({ carriers }) => carriers);
  }

  resolve(request: IncomingMessage, onRefused?: TokenRefusalListener): SessionToken[] {
    const tokens = new Map<string, SessionToken>();
    for (const [position, resolver] of this.#resolvers.entries()) {
      const room = MOST_TOKENS - KEPT_FREE * (this.#resolvers.length - 1 - position);
      for (const token of resolver.resolve(request, onRefused)) {
        if (tokens.has(token.reveal()) || tokens.size >= room) continue;
        tokens.set(token.reveal(), token);
        this.#finders.set(token, resolver);
      }
    }
    return [...tokens.values()];
  }

  send(request: IncomingMessage, response: ServerResponse, token: SessionToken, client: SessionClient): void {
    this.#answering(client).send(request, response, token, client);
  }

  expire(request: IncomingMessage, response: ServerResponse, client: SessionClient): void {
    this.#answering(client).expire(request, response, client);
  }

  override maxAge(client: SessionClient): number | undefined {
    if (client.presented) return this.#answering(client).maxAge(client);
    return this.#resolvers.map((each) => each.maxAge(client)).find((maxAge) => maxAge !== undefined);
  }

  /** @internal */
  override visitorCookie(request: IncomingMessage): ({ readonly name: string } & SetCookieAttributes) | undefined {
    return this.#resolvers[0].visitorCookie(request);
  }

  /** @internal */
  override deviceCookie(request: IncomingMessage, alias?: string): DeviceCookie | undefined {
    return this.#resolvers.map((each) => each.deviceCookie(request, alias)).find((cookie) => cookie !== undefined);
  }

  override meets(security: SecurityLevel): boolean {
    return this.#resolvers.every((each) => each.meets(security));
  }

  #answering({ presented }: SessionClient): SessionIdResolver {
    return (presented && this.#finders.get(presented)) ?? this.#resolvers[0];
  }
}
