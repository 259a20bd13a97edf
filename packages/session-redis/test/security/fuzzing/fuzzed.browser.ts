import { createHmac, randomBytes } from 'node:crypto';
import type { Presented, TokenFault } from './fuzzed.plans.js';
import type { Response } from './http-responses.js';

const WRONG_KEY = 'no key of the application';
const COOKIE = /^((?:__Host-)?SESSION(?:\.1?\d)?)=([\w.=+/-]*)((?:; ?[^;,]+)*)$/;
const TOKEN_HEADER = 'x-auth-token';

/** The cookies and the header of one client. It keeps what the server sends, and presents it, or something like it. */
export class FuzzedBrowser {
  readonly #cookies = new Map<string, string>();
  #header: string | undefined;
  csrfToken: string | undefined;
  /** Every value that the server has sent, and that no log may show. */
  readonly issued = new Set<string>();

  /** `kind`: a client with a header presents one from the start, because the server answers in kind. */
  constructor(kind: 'cookies' | 'header') {
    if (kind === 'header') this.#header = random();
  }

  /**
   * Stores what a response sends.
   * @throws Error for a cookie that no option asks for
   */
  keep({ setCookies, headers, body }: Response): void {
    const names = new Set<string>();
    for (const setCookie of setCookies) {
      const [, name, value] = COOKIE.exec(setCookie) ?? [];
      if (name === undefined || names.has(name)) throw new Error(`Unexpected: Set-Cookie: ${setCookie}`);
      names.add(name);
      this.#keepCookie(name, value!);
    }
    const token = headers.get(TOKEN_HEADER);
    if (token !== undefined) this.#keepHeader(token);
    this.csrfToken = /"token":"([\w-]+)"/.exec(body)?.[1] ?? this.csrfToken;
  }

  /** The header lines of a request. */
  present(presented: Presented, other: FuzzedBrowser): string[] {
    const cookies = presented.flatMap((each) => {
      if (each === 'own') return [...this.#cookies];
      if (each === 'of the other browser') return [...other.#cookies];
      if (each === 'hundred others') return Array.from({ length: 100 }, () => ['SESSION', random()] as const);
      return [...this.#cookies].map(([name, value]) => [name, damaged(value, each)] as const);
    });
    const headers = this.#header === undefined ? [] : presented.flatMap((each) => this.#presentHeader(each));
    const lines = headers.map((value) => `X-Auth-Token: ${value}`);
    if (cookies.length > 0) lines.push(`Cookie: ${cookies.map(([name, value]) => `${name}=${value}`).join('; ')}`);
    return lines;
  }

  #presentHeader(each: Presented[number]): string[] {
    if (each === 'own') return [this.#header!];
    return typeof each === 'object' ? [damaged(this.#header!, each)] : [];
  }

  #keepCookie(name: string, value: string): void {
    if (value === '') {
      this.#cookies.delete(name);
      return;
    }
    this.issued.add(value);
    this.#cookies.set(name, value);
  }

  #keepHeader(value: string): void {
    this.#header = value === '' ? random() : value;
    if (value !== '') this.issued.add(value);
  }
}

/** Another value than that of a cookie or header, which opens nothing. */
function damaged(value: string, { how, at }: TokenFault): string {
  const place = Math.min(Math.floor(at * value.length), value.length - 1);
  const before = value.slice(0, place);
  const after = value.slice(place + 1);
  const faults: Record<TokenFault['how'], () => string> = {
    flip: () => `${before}${value[place] === 'A' ? 'B' : 'A'}${after}`,
    case: () => (value === value.toUpperCase() ? value.toLowerCase() : value.toUpperCase()),
    truncate: () => before,
    extend: () => `${value}${'A'.repeat(1 + Math.floor(at * 100))}`,
    quote: () => `"${value}"`,
    percent: () => `${before}%${value.charCodeAt(place).toString(16)}${after}`,
    'wrong key': () => signedWrongly(value),
    random,
  };
  return faults[how]();
}

function signedWrongly(value: string): string {
  const decoded = Buffer.from(value, 'base64').toString('latin1');
  const token = /^([\w-]{43})\./.exec(decoded)?.[1] ?? value.slice(0, 43);
  const signature = createHmac('sha256', WRONG_KEY).update(`nest-session cookie SESSION=${token}`).digest('base64url');
  const signed = `${token}.${signature}`;
  return decoded.includes('.') ? Buffer.from(signed).toString('base64') : signed;
}

function random(): string {
  return randomBytes(32).toString('base64url');
}
