import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { stringifySetCookie } from 'cookie';
import { cookieValues } from '../resolvers/cookie-session-id.resolver.js';
import { appendHeader } from '../resolvers/response-headers.js';
import type { SessionIdResolver } from '../resolvers/session-id.resolver.js';
import { assertStartable, type SessionResponse } from '../session/session-response.js';

const BYTES = 32;

interface OpenResponse extends SessionResponse {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  onHeaders(action: () => void): void;
}

/** Not stored, and not signed: whoever can plant a cookie could plant one that we have signed, but cannot guess it. */
export class VisitorToken {
  readonly #name: string | undefined;
  /** Cookies of other paths and domains have the same name. */
  readonly #presented: readonly Buffer[];
  #token: Buffer | undefined;

  constructor(
    private readonly at: OpenResponse,
    private readonly resolver: SessionIdResolver,
  ) {
    this.#name = resolver.visitorCookie(at.request)?.name;
    const values = this.#name === undefined ? [] : cookieValues(at.request.headers.cookie, this.#name);
    const decoded = values.map((value) => Buffer.from(value, 'base64url'));
    this.#presented = decoded.filter((each, i) => each.length === BYTES && each.toString('base64url') === values[i]);
  }

  get known(): Buffer | undefined {
    return this.#token ?? this.#presented[0];
  }

  /** Whether the browser presented this token. From then on, it is the known one. */
  accepts(token: Buffer): boolean {
    const found = this.#presented.find((each) => each.length === token.length && timingSafeEqual(each, token));
    if (found) this.#token = found;
    return found !== undefined;
  }

  /** Undefined when tokens of sessions are in no cookie. @throws SessionStateError when a new one comes too late */
  take(): Buffer | undefined {
    if (this.known ?? this.#name === undefined) return this.known;
    assertStartable(this.at);
    this.at.hold?.();
    const token = (this.#token = randomBytes(BYTES));
    this.at.onHeaders(() => {
      const cookie = { ...this.resolver.visitorCookie(this.at.request)!, value: token.toString('base64url') };
      appendHeader(this.at.response, 'Set-Cookie', stringifySetCookie(cookie));
    });
    return token;
  }
}
