import type { IncomingMessage, ServerResponse } from 'node:http';
import { stringifySetCookie } from 'cookie';
import { OptionReader } from '../options/option.reader.js';
import type { SessionToken } from '../session/session-token.js';
import { CookieCodec } from './cookie.codec.js';
import { CookieWarnings } from './cookie.warnings.js';
import {
  type CookieOptions,
  overrideAttributes,
  readCookieOptions,
  type ResolvedCookieAttributes,
  type ResolvedCookieOptions,
} from './cookie.options.js';
import { isHostName } from './cookie.validation.js';
import { hostOf, isSecure, isWithin } from './request-origin.js';
import { appendHeader } from './response-headers.js';
import { type SessionClient, SessionIdResolver } from './session-id.resolver.js';

// What is written needs no encoding; "=" at the end of base64 would be, and other languages do not decode it.
const AS_IT_IS = { encode: (value: string) => value };

// Those of other paths and domains have no mark: leftovers may come first, but not in any number.
const MOST_TOKENS = 5;

/** Keeps the token in a cookie. Other cookies of the response stay as they are. */
export class CookieSessionIdResolver extends SessionIdResolver {
  readonly headers = ['Cookie'];
  readonly #cookie: ResolvedCookieOptions;
  readonly #codec: CookieCodec;
  readonly #diagnosis: CookieWarnings;

  /**
   * Keeps the token in the cookie that the options describe.
   * @throws InvalidSessionOptionsError naming all problems at once
   */
  constructor(options?: CookieOptions) {
    super();
    const reader = new OptionReader('CookieSessionIdResolver', { cookie: options });
    this.#cookie = readCookieOptions(reader.section('cookie'));
    reader.finish();
    this.#codec = new CookieCodec(this.#cookie);
    this.#diagnosis = new CookieWarnings(this.#cookie.name);
  }

  resolve(request: IncomingMessage): SessionToken[] {
    const tokens = new Map<string, SessionToken>();
    for (const value of cookieValues(request.headers.cookie ?? '', this.#cookie.name)) {
      const token = this.#codec.decode(value);
      if (typeof token === 'string') this.#diagnosis.ofRefused(value, token);
      else tokens.set(token.reveal(), token);
      if (tokens.size === MOST_TOKENS) break;
    }
    return [...tokens.values()];
  }

  send(request: IncomingMessage, response: ServerResponse, token: SessionToken, client: SessionClient): void {
    const attributes = this.#attributesFor(request);
    this.#diagnosis.ofSent(request, attributes);
    this.#setCookie(request, response, {
      ...attributes,
      value: this.#codec.encode(token),
      maxAge: this.maxAge(client),
    });
  }

  expire(request: IncomingMessage, response: ServerResponse): void {
    this.#setCookie(request, response, { ...this.#attributesFor(request), value: '', maxAge: 0 });
  }

  override maxAge({ isRemembered }: SessionClient): number | undefined {
    const { maxAge, rememberMe = maxAge } = this.#cookie;
    return isRemembered ? rememberMe : maxAge;
  }

  #setCookie(
    request: IncomingMessage,
    response: ServerResponse,
    sent: ResolvedCookieAttributes & { readonly value: string; readonly maxAge: number | undefined },
  ): void {
    const { value, maxAge, path, httpOnly, sameSite, partitioned } = sent;
    const { name } = this.#cookie;
    const domain = domainFor(request, sent);
    const secure = sent.secure === 'auto' ? isSecure(request) : sent.secure;
    const cookie = { name, value, path, httpOnly, secure, sameSite, partitioned };
    const optional = { ...(domain !== undefined && { domain }), ...(maxAge !== undefined && { maxAge }) };
    appendHeader(response, 'Set-Cookie', stringifySetCookie({ ...cookie, ...optional }, AS_IT_IS));
  }

  #attributesFor(request: IncomingMessage): ResolvedCookieAttributes {
    try {
      const others = this.#cookie.attributes?.(request);
      // What no compiler has checked. A rejection that nobody hears of would end the process.
      if (others instanceof Promise) {
        others.catch(() => undefined);
        throw new TypeError('it has returned a promise, for which no answer waits: return the attributes themselves');
      }
      return others === undefined ? this.#cookie : overrideAttributes(this.#cookie, others);
    } catch (error) {
      // The session is stored and its answer on the way: with the cookie that was configured it is not lost.
      this.#diagnosis.ofAttributes(error);
      return this.#cookie;
    }
  }
}

function domainFor(request: IncomingMessage, { domain, domainPattern }: ResolvedCookieAttributes): string | undefined {
  const host = domainPattern ? hostOf(request) : undefined;
  // What a client says it is talking to, and what the pattern makes of it.
  if (!domainPattern || host === undefined || !isHostName(host)) return domain;
  const found = domainPattern.exec(host)?.[1];
  return found !== undefined && isHostName(found) && isWithin(host, found) ? found : undefined;
}

/** The values of all cookies of a name, undecoded: a token holds nothing that would be encoded. */
function* cookieValues(header: string, name: string): Iterable<string> {
  if (!header.includes(`${name}=`)) return;
  for (const pair of header.split(';')) {
    const separator = pair.indexOf('=');
    if (separator >= 0 && withoutBlanks(pair.slice(0, separator)) === name) {
      yield withoutBlanks(pair.slice(separator + 1));
    }
  }
}

/**
 * RFC 6265bis, 5.6: spaces and tabs. `trim()` takes away more, such as a no-break space: a name with one is no `__Host-`
 * name to the browser, so that other hosts of the domain can set it, and must be none here.
 */
function withoutBlanks(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && isBlank(text[start])) start++;
  while (end > start && isBlank(text[end - 1])) end--;
  return text.slice(start, end);
}

function isBlank(character: string | undefined): boolean {
  return character === ' ' || character === '\t';
}
