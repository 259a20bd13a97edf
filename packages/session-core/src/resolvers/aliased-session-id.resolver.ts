import type { IncomingMessage, ServerResponse } from 'node:http';
import type { SecurityLevel } from '../option-reading/security-level.js';
import type { SessionToken } from '../session/session-token.js';
import type { SetCookieAttributes } from './attributes-for-request.js';
import { CookieSessionIdResolver } from './cookie-session-id.resolver.js';
import type { CookieOptions } from './cookie.options.js';
import { ALIASES, aliasIn, DEFAULT_ALIAS } from './session-alias.js';
import { type SessionClient, SessionIdResolver, type TokenRefusalListener } from './session-id.resolver.js';

/**
 * Gives a browser several sessions, with a cookie for each alias. The URL of a request contains the alias. It is not
 * secret, because it only selects one of the browser's own cookies.
 */
export class AliasedSessionIdResolver extends SessionIdResolver {
  readonly headers: readonly string[];
  readonly #cookies: ReadonlyMap<string, CookieSessionIdResolver>;
  /** Remembers the alias of each request, because routers change the URL later. */
  readonly #aliases = new WeakMap<IncomingMessage, string>();

  constructor(cookie: CookieOptions = {}, security?: SecurityLevel) {
    super();
    const { name } = new CookieSessionIdResolver(cookie, security);
    const nameFor = (alias: string) => (alias === DEFAULT_ALIAS ? name : `${name}.${alias}`);
    this.#cookies = new Map(
      ALIASES.map((alias) => [alias, new CookieSessionIdResolver({ ...cookie, name: nameFor(alias) }, security)]),
    );
    this.headers = this.#cookieOf(DEFAULT_ALIAS).headers;
  }

  aliasOf(request: IncomingMessage): string {
    const known = this.#aliases.get(request);
    if (known !== undefined) return known;
    const alias = aliasIn(request.url);
    this.#aliases.set(request, alias);
    return alias;
  }

  /** The tokens that the browser presents, by alias. */
  resolveAll(request: IncomingMessage): Map<string, readonly SessionToken[]> {
    const all = [...this.#cookies].map(([alias, cookie]) => [alias, cookie.resolve(request)] as const);
    return new Map(all.filter(([, tokens]) => tokens.length > 0));
  }

  /** Expires the cookie of an alias. */
  forget(request: IncomingMessage, response: ServerResponse, alias: string): void {
    this.#cookieOf(alias).expire(request, response);
  }

  resolve(request: IncomingMessage, onRefused?: TokenRefusalListener): readonly SessionToken[] {
    return this.#resolverFor(request).resolve(request, onRefused);
  }

  send(request: IncomingMessage, response: ServerResponse, token: SessionToken, client: SessionClient): void {
    this.#resolverFor(request).send(request, response, token, client);
  }

  expire(request: IncomingMessage, response: ServerResponse): void {
    this.#resolverFor(request).expire(request, response);
  }

  override cookieFor(request: IncomingMessage): SetCookieAttributes | undefined {
    return this.#resolverFor(request).cookieFor(request);
  }

  /** @internal */
  override visitorCookie(request: IncomingMessage): ({ readonly name: string } & SetCookieAttributes) | undefined {
    return this.#resolverFor(request).visitorCookie(request);
  }

  override maxAge(client: SessionClient): number | undefined {
    return this.#cookieOf(DEFAULT_ALIAS).maxAge(client);
  }

  #resolverFor(request: IncomingMessage): CookieSessionIdResolver {
    return this.#cookieOf(this.aliasOf(request));
  }

  #cookieOf(alias: string): CookieSessionIdResolver {
    return this.#cookies.get(alias)!;
  }
}
