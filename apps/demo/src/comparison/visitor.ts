import { type AccountView, SOCKET } from '../sides/side.js';
import { LiveSocket } from './live-socket.js';

// Milliseconds. Longer than Redis is frozen.
const LONGEST = 15_000;

/** A request as its sender saw it. */
export interface SentRequest {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  /** Milliseconds until the headers of the response came. */
  readonly took: number;
}

/** A browser of its own, which uses the shop of one side and measures what it gets. */
export class Visitor {
  readonly #cookies = new Map<string, string>();

  constructor(
    readonly origin: string,
    readonly requests: SentRequest[] = [],
  ) {}

  add(name: string, { isSlow = false } = {}): Promise<SentRequest> {
    return this.send('POST', isSlow ? 'cart?slowly=true' : 'cart', { name });
  }

  async account(): Promise<AccountView> {
    const { response, sent } = await this.#open('GET', 'account');
    if (!response.ok) throw new Error(`${sent.method} ${sent.path} was answered with ${sent.status}`);
    return (await response.json()) as AccountView;
  }

  /** Sends a request, and waits for all of the response. */
  async send(method: string, route: string, body?: object): Promise<SentRequest> {
    const { response, sent } = await this.#open(method, route, body);
    await response.text();
    return sent;
  }

  /** Follows the redirect as soon as the headers are there, as browsers do. */
  async signIn(): Promise<AccountView> {
    const { response } = await this.#open('POST', 'login');
    const rest = response.text();
    const account = await this.account();
    await rest;
    return account;
  }

  /** The same browser with the cookies of now: it does not learn of a later sign-out. */
  copy(): Visitor {
    const copy = this.another();
    for (const [name, value] of this.#cookies) copy.#cookies.set(name, value);
    return copy;
  }

  /** Another browser, which is another visitor. */
  another(): Visitor {
    return new Visitor(this.origin, this.requests);
  }

  openSocket(): Promise<LiveSocket> {
    return LiveSocket.open(this.origin.replace('http', 'ws') + SOCKET, { cookie: this.#cookie });
  }

  get #cookie(): string {
    return [...this.#cookies].map((pair) => pair.join('=')).join('; ');
  }

  async #open(method: string, route: string, body?: object): Promise<{ response: Response; sent: SentRequest }> {
    const [began, path] = [performance.now(), `/compared/${route}`];
    const headers = { cookie: this.#cookie, ...(body && { 'content-type': 'application/json' }) };
    const options = { method, headers, redirect: 'manual' as const, ...(body && { body: JSON.stringify(body) }) };
    const signal = AbortSignal.timeout(LONGEST);
    const response = await fetch(this.origin + path, { ...options, signal });
    const sent = { method, path, status: response.status, took: Math.round(performance.now() - began) };
    this.requests.push(sent);
    for (const line of response.headers.getSetCookie()) this.#keep(line);
    return { response, sent };
  }

  #keep(line: string): void {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
    if (value === '') this.#cookies.delete(name);
    else this.#cookies.set(name, value);
  }
}
