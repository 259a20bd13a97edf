import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { stringifySetCookie } from 'cookie';
import { shownText } from '../logging/shown-error.js';
import { WarnOnce } from '../logging/warn-once.js';
import { OptionReader } from '../option-reading/option.reader.js';
import type { SecurityLevel } from '../option-reading/strict-security.js';
import { SessionToken, sessionTokenOf } from '../session/session-token.js';
import {
  attributesForRequest,
  type CookieOptions,
  type CookiePolicy,
  LONGEST_VALUE,
  PREFIX,
  readCookieOptions,
  type ResolvedCookieOptions,
  type SetCookieAttributes,
} from './cookie.options.js';
import { hostOf, isForwardedFromHttps, isLocal, isSecure, isWithin } from './proxied-request.js';
import { appendHeader } from './response-headers.js';
import {
  type DeviceCookie,
  MOST_TOKENS,
  type SessionClient,
  SessionIdResolver,
  type TokenCarrier,
  type TokenRefusal,
  type TokenRefusalListener,
} from './session-id.resolver.js';

// Tokens and signatures need no encoding.
const AS_IT_IS = { encode: (value: string) => value };

/** Carries the token in a cookie. It leaves the other cookies of the response unchanged. */
export class CookieSessionIdResolver extends SessionIdResolver {
  readonly headers = ['Cookie'];
  readonly #cookie: ResolvedCookieOptions;
  readonly #codec: CookieCodec;
  readonly #diagnosis: CookieWarnings;
  readonly #deviceCookie: DeviceCookie;

  /**
   * Keeps the token in the cookie that the options describe. If you set `security: 'strict'` on `SessionModule`, pass
   * `'strict'` here as well.
   * @throws InvalidSessionOptionsError that names all problems at once
   */
  constructor(options?: CookieOptions, security: SecurityLevel = 'standard') {
    super();
    const reader = new OptionReader('CookieSessionIdResolver', { cookie: options });
    this.#cookie = readCookieOptions(reader.section('cookie'), security);
    reader.finish();
    this.#codec = new CookieCodec(this.#cookie);
    this.#diagnosis = new CookieWarnings(this.#cookie.name);
    this.#deviceCookie = {
      name: `${this.#cookie.name}-device`,
      attributesFor: (request) => this.#deviceAttributes(request),
    };
  }

  /** @internal */
  override get carriers(): readonly TokenCarrier[] {
    return [{ in: 'cookie', name: this.name }];
  }

  /** The name of the cookie. */
  get name(): string {
    return this.#cookie.name;
  }

  resolve(request: IncomingMessage, onRefused?: TokenRefusalListener): SessionToken[] {
    const tokens: SessionToken[] = [];
    // Cookies of other paths and domains have the same name, and may come first.
    const values = cookieValues(request.headers.cookie, this.#cookie.name, MOST_TOKENS + 1);
    if (values.length > MOST_TOKENS) this.#diagnosis.ofTooMany(MOST_TOKENS);
    for (const value of values.slice(0, MOST_TOKENS)) {
      const token = this.#codec.decode(value);
      // Some clients keep an expired cookie with an empty value.
      if (typeof token === 'string') {
        if (value !== '' && !onRefused?.(request, token)) this.#diagnosis.ofRefused(token);
      } else if (!tokens.some((known) => known.reveal() === token.reveal())) tokens.push(token);
    }
    return tokens;
  }

  send(request: IncomingMessage, response: ServerResponse, token: SessionToken, client: SessionClient): void {
    this.#diagnosis.ofSent(request, this.#cookie);
    this.#setCookie(response, this.cookieFor(request), this.#codec.encode(token, client.turn), this.maxAge(client));
  }

  expire(request: IncomingMessage, response: ServerResponse): void {
    this.#setCookie(response, this.cookieFor(request), '', 0);
  }

  override cookieFor(request: IncomingMessage): SetCookieAttributes {
    return attributesForRequest(request, this.#cookie);
  }

  /** @internal Of this host alone, also where hosts share the token. No other host can plant one with the prefix. */
  override visitorCookie(request: IncomingMessage): { readonly name: string } & SetCookieAttributes {
    const { domain: _, ...attributes } = this.cookieFor(request);
    const { secure, path } = this.#cookie;
    const prefix = secure === true && path === '/' ? '__Host-' : '';
    return { ...attributes, name: `${prefix}${this.name.replace(PREFIX, '')}.csrf`, httpOnly: true };
  }

  /** @internal */
  override deviceCookie(): DeviceCookie {
    return this.#deviceCookie;
  }

  /** With each link from outside: what is `Strict` would be missing there, and no browser would renew it. */
  #deviceAttributes(request: IncomingMessage): SetCookieAttributes {
    const attributes = this.cookieFor(request);
    const sameSite = attributes.sameSite === 'none' ? 'none' : 'lax';
    return { ...attributes, httpOnly: true, secure: true, sameSite, partitioned: false };
  }

  override meets(security: SecurityLevel): boolean {
    return security === 'standard' || this.#cookie.security === 'strict';
  }

  override maxAge({ isRemembered, maxAge: own }: SessionClient): number | undefined {
    if (own !== undefined) return own === 0 ? undefined : own;
    const { maxAge, rememberMe = maxAge } = this.#cookie;
    return isRemembered ? rememberMe : maxAge;
  }

  #setCookie(response: ServerResponse, attributes: SetCookieAttributes, value: string, maxAge?: number): void {
    const cookie = { name: this.name, value, ...attributes, ...(maxAge !== undefined && { maxAge }) };
    appendHeader(response, 'Set-Cookie', stringifySetCookie(cookie, AS_IT_IS));
  }
}

// Neither tokens nor signatures contain it.
const SEPARATOR = '.';
const BEFORE_TURN = '~';
// The length of 32 bytes in base64url.
const SIGNATURE_LENGTH = 43;

export class CookieCodec {
  readonly #name: string;
  readonly #keys: readonly KeyObject[];

  constructor({ name, signingKeys }: Pick<ResolvedCookieOptions, 'name' | 'signingKeys'>) {
    this.#name = name;
    this.#keys = signingKeys;
  }

  encode(token: SessionToken, turn = ''): string {
    const [key] = this.#keys;
    const text = turn === '' ? token.reveal() : `${token.reveal()}${BEFORE_TURN}${turn}`;
    return key ? `${text}${SEPARATOR}${this.#sign(text, key)}` : text;
  }

  decode(value: string): SessionToken | TokenRefusal {
    if (value.length > LONGEST_VALUE) return 'malformed';
    if (this.#keys.length === 0) return tokenIn(value) ?? 'malformed';
    const [text = '', ...signature] = value.split(SEPARATOR);
    const token = tokenIn(text);
    if (!token || signature.length > 1) return 'malformed';
    if (signature[0] === undefined) return 'unsigned';
    return this.#isSigned(text, signature[0]) ? token : 'badly signed';
  }

  #isSigned(token: string, signature: string): boolean {
    // Compare texts: Node.js decodes many base64 texts to the same bytes.
    const presented = Buffer.from(signature);
    // Check the length first: a request with many cookies would otherwise cost many HMACs.
    if (presented.length !== SIGNATURE_LENGTH) return false;
    return this.#keys.some((key) => timingSafeEqual(presented, Buffer.from(this.#sign(token, key))));
  }

  /** Signs the name of the cookie, too, so that a signature that the key made for another purpose is not valid here. */
  #sign(token: string, key: KeyObject): string {
    return createHmac('sha256', key).update(`nest-session cookie ${this.#name}=${token}`).digest('base64url');
  }
}

function tokenIn(text: string): SessionToken | undefined {
  const [value, turn = '', ...more] = text.split(BEFORE_TURN);
  const token = more.length === 0 && /^[\w-]*$/.test(turn) ? sessionTokenOf(value) : undefined;
  return token && turn !== '' ? new SessionToken(token.reveal(), turn) : token;
}

/** In their order, without quotes (RFC 6265, 4.1.1). Not decoded: tokens need no encoding. Takes linear time. */
export function cookieValues(header: unknown, name: string, most = MOST_TOKENS): string[] {
  const values: string[] = [];
  // Mercurius puts what a client sends over a connection among the headers: any JSON.
  if (typeof header !== 'string' || !header.includes(name)) return values;
  for (const pair of header.split(';')) {
    const at = pair.indexOf('=');
    if (at < 0 || withoutBlanks(pair.slice(0, at)) !== name) continue;
    values.push(withoutQuotes(withoutBlanks(pair.slice(at + 1))));
    if (values.length === most) break;
  }
  return values;
}

/**
 * Removes only spaces and tabs (RFC 6265bis, 5.6). `trim()` would also remove a no-break space. For a browser, a name
 * with a leading no-break space does not begin with `__Host-`, so other hosts of the domain could set such a cookie.
 */
function withoutBlanks(text: string): string {
  let [start, end] = [0, text.length];
  while (isBlank(text[start])) start++;
  while (end > start && isBlank(text[end - 1])) end--;
  return text.slice(start, end);
}

function withoutQuotes(text: string): string {
  return text.length > 1 && text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1) : text;
}

function isBlank(character: string | undefined): boolean {
  return character === ' ' || character === '\t';
}

const REASONS: Readonly<Record<TokenRefusal, string>> = {
  malformed:
    'If this continues, another application on a host of the same domain sets a cookie of the same name: then set another ' +
    '`cookie.name`',
  unsigned:
    'Either it was set before `cookie.signingKeys`, and its user has to sign in again, or a client guesses tokens',
  'badly signed':
    'If this continues, a signing key was replaced in one step: on every instance, put the new key first in ' +
    '`cookie.signingKeys` and keep the old one behind it until its cookies have expired',
};

class CookieWarnings {
  readonly #log = new WarnOnce();

  constructor(private readonly name: string) {}

  ofSent(request: IncomingMessage, { secure, domain }: CookiePolicy): void {
    const isHttps = isSecure(request) || isForwardedFromHttps(request);
    const host = hostOf(request);
    if (secure === 'auto' && isHttps && !isSecure(request)) {
      this.#once(
        'untrusted proxy',
        'is set without Secure: X-Forwarded-Proto says https, but no proxy is trusted, so the request counts as ' +
          "http. Behind a proxy that ends TLS, name its address: app.set('trust proxy', ...) on Express, " +
          'new FastifyAdapter({ trustProxy: ... }) on Fastify; or set `cookie.secure` to true',
      );
    }
    if (secure === true && !isHttps && host !== undefined && !isLocal(host)) {
      this.#once(
        'secure over http',
        'is set with Secure on a response to a request that came over http: browsers drop it. Serve the application ' +
          "over https, or set `cookie.secure` to 'auto'",
      );
    }
    if (typeof domain === 'string' && host !== undefined && !isWithin(host, domain)) {
      this.#once(
        'foreign domain',
        `is set for the domain ${shownText(domain)} on a response to a request for another host: browsers drop it. ` +
          'Set `cookie.domain` to a domain that contains all hosts of the application, or to a list of domains. ' +
          'Behind a proxy, make the proxy forward the Host header, or trust it',
      );
    }
  }

  ofRefused(refusal: TokenRefusal): void {
    this.#once(refusal, `of a request was ignored: it is ${refusal}. ${REASONS[refusal]}`);
  }

  ofTooMany(most: number): void {
    this.#once(
      'too many',
      `came more than ${most} times in one request, so the others were ignored. Another host of the same domain sets ` +
        'cookies of this name: choose a name that begins with `__Host-`, which no other host can set',
    );
  }

  #once(cause: string, diagnosis: string): void {
    this.#log.warn(cause, `The cookie ${this.name} ${diagnosis}`);
  }
}
