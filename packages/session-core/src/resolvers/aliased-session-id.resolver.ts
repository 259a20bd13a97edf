import type { IncomingMessage, ServerResponse } from 'node:http';
import type { SecurityLevel } from '../option-reading/strict-security.js';
import type { SessionToken } from '../session/session-token.js';
import { CookieSessionIdResolver } from './cookie-session-id.resolver.js';
import type { CookieOptions, SetCookieAttributes } from './cookie.options.js';
import {
  type DeviceCookie,
  type SessionClient,
  SessionIdResolver,
  type TokenCarrier,
  type TokenRefusalListener,
} from './session-id.resolver.js';

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

  /** @internal That of the default alias. */
  override get carriers(): readonly TokenCarrier[] {
    return this.#cookieOf(DEFAULT_ALIAS).carriers;
  }

  aliasOf(request: IncomingMessage): string {
    const known = this.#aliases.get(request);
    if (known !== undefined) return known;
    const alias = aliasIn(request.url);
    this.#aliases.set(request, alias);
    return alias;
  }

  resolveAll(request: IncomingMessage): Map<string, readonly SessionToken[]> {
    const all = [...this.#cookies].map(([alias, cookie]) => [alias, cookie.resolve(request)] as const);
    return new Map(all.filter(([, tokens]) => tokens.length > 0));
  }

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

  /** @internal */
  override deviceCookie(request: IncomingMessage, alias = this.aliasOf(request)): DeviceCookie {
    return this.#cookieOf(alias).deviceCookie();
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

/** The URL parameter that selects one of the browser's sessions. */
const PARAMETER = '_s';

/** The alias of a URL without the parameter. */
export const DEFAULT_ALIAS = '0';

// Each session has a cookie, and every request carries all of these cookies.
const MOST_SESSIONS = 20;

/** All aliases, `'0'` to `'19'`. */
export const ALIASES: readonly string[] = Array.from({ length: MOST_SESSIONS }, (_, number) => String(number));

export function aliasIn(url = ''): string {
  const [, query = ''] = /^[^?#]*\?([^#]*)/.exec(url) ?? [];
  const alias = query
    .split('&')
    .find(isAliasParameter)
    ?.slice(PARAMETER.length + 1);
  return alias !== undefined && ALIASES.includes(alias) ? alias : DEFAULT_ALIAS;
}

export function withAlias(url: string, alias: string): string {
  const [, path = '', query, fragment = ''] = /^([^?#]*)(?:\?([^#]*))?(#.*)?$/s.exec(url) ?? [];
  const others = (query ?? '').split('&').filter((parameter) => parameter !== '' && !isAliasParameter(parameter));
  const parameters = alias === DEFAULT_ALIAS ? others : [...others, `${PARAMETER}=${alias}`];
  return path + (parameters.length > 0 ? `?${parameters.join('&')}` : '') + fragment;
}

function isAliasParameter(parameter: string): boolean {
  return parameter === PARAMETER || parameter.startsWith(`${PARAMETER}=`);
}
