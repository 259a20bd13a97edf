import { Agent, type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http';
import { CookieJar, MemoryCookieStore } from 'tough-cookie';

export interface HttpAgentOptions {
  /** Sent with every request; those of a request win. */
  readonly headers?: OutgoingHttpHeaders | undefined;
  /** Keeps connections open between requests, until `close()`. @default false */
  readonly keepAlive?: boolean | undefined;
  /** Treats cookies as a browser on https does, as behind a proxy that ends TLS. @default false */
  readonly secure?: boolean | undefined;
}

export interface HttpRequestOptions {
  /** A `cookie` header replaces the cookies of the jar. */
  readonly headers?: OutgoingHttpHeaders | undefined;
  /** A string or Buffer is sent as it is, anything else as JSON. */
  readonly body?: unknown;
  /** Called when the head has arrived, before the body. */
  readonly onHead?: ((head: IncomingMessage) => void) | undefined;
  /** Aborts the request: it rejects, and the connection is closed. */
  readonly signal?: AbortSignal | undefined;
}

export interface HttpResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Names and values in turn, as they were sent. */
  readonly rawHeaders: readonly string[];
  /** The values of the `Set-Cookie` headers. */
  readonly setCookies: readonly string[];
  readonly text: string;
  json<T = unknown>(): T;
}

/**
 * A client that keeps cookies as a browser does and follows no redirect. Any number of requests may run at once; the
 * cookies of a response are in the jar as soon as its head has arrived. Unlike the global `fetch`, an aborted request
 * leaves nothing behind that delays the closing of a server.
 */
export class HttpAgent {
  readonly #origin: URL;
  readonly #options: HttpAgentOptions;
  readonly #store = new MemoryCookieStore();
  // A browser makes exceptions for Secure cookies on its own machine; here they would hide what others run into.
  readonly #jar = new CookieJar(this.#store, { allowSecureOnLocal: false, enforceSecureOriginOnStorage: true });
  readonly #agent: Agent;

  /** @param origin such as `http://127.0.0.1:3000` */
  constructor(origin: string, options: HttpAgentOptions = {}) {
    this.#origin = new URL(origin);
    this.#options = options;
    this.#agent = new Agent({ keepAlive: options.keepAlive ?? false });
  }

  /** Another client, with a copy of the cookies: from now on they go their own ways. */
  fork(): HttpAgent {
    const fork = new HttpAgent(this.#origin.href, this.#options);
    this.#jar.cloneSync(fork.#store);
    return fork;
  }

  /** The cookies of the jar by name, for whatever path they are. */
  get cookies(): Record<string, string> {
    const cookies = this.#jar.getCookiesSync(this.#cookieUrl('/'), { allPaths: true });
    return Object.fromEntries(cookies.map(({ key, value }) => [key, value]));
  }

  cookie(name: string): string | undefined {
    return this.cookies[name];
  }

  /** Puts a cookie into the jar, as a `Set-Cookie` header with this value would. */
  setCookie(setCookie: string): void {
    this.#jar.setCookieSync(setCookie, this.#cookieUrl('/'));
  }

  clearCookies(): void {
    this.#jar.removeAllCookiesSync();
  }

  get(path: string, options?: HttpRequestOptions): Promise<HttpResponse> {
    return this.request('GET', path, options);
  }

  post(path: string, body?: unknown, options?: HttpRequestOptions): Promise<HttpResponse> {
    return this.request('POST', path, { ...options, body });
  }

  /** Resolves when the whole body is there, whatever the status; rejects when the connection broke before. */
  async request(method: string, path: string, options: HttpRequestOptions = {}): Promise<HttpResponse> {
    const message = await this.open(method, path, options);
    const chunks: Buffer[] = [];
    for await (const chunk of message) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    return {
      status: message.statusCode ?? 0,
      headers: message.headers,
      rawHeaders: message.rawHeaders,
      setCookies: message.headers['set-cookie'] ?? [],
      text,
      json: <T>() => JSON.parse(text) as T,
    };
  }

  /** Resolves to the response when its head is there, for who reads slowly or for ever; `destroy()` hangs up. */
  open(method: string, path: string, options: HttpRequestOptions = {}): Promise<IncomingMessage> {
    const { body, onHead, signal } = options;
    const headers: OutgoingHttpHeaders = lowerCased({ ...this.#options.headers }, { ...options.headers });
    const content = encode(body, headers);
    const cookies = this.#jar.getCookieStringSync(this.#cookieUrl(path));
    if (cookies !== '') headers['cookie'] ??= cookies;
    return new Promise((resolve, reject) => {
      const { hostname, port } = this.#origin;
      const sent = request({ agent: this.#agent, host: hostname, port, method, path, headers, signal });
      sent.once('error', reject);
      sent.once('response', (message) => {
        // Once the head is there, the message has the error.
        sent.on('error', () => {});
        message.on('error', () => {});
        for (const setCookie of message.headers['set-cookie'] ?? []) {
          this.#jar.setCookieSync(setCookie, this.#cookieUrl(path), { ignoreError: true });
        }
        onHead?.(message);
        resolve(message);
      });
      sent.end(content);
    });
  }

  /** Closes the connections that were kept open. */
  close(): void {
    this.#agent.destroy();
  }

  #cookieUrl(path: string): string {
    return `${this.#options.secure ? 'https:' : 'http:'}//${this.#origin.host}${path}`;
  }
}

function lowerCased(...sets: OutgoingHttpHeaders[]): OutgoingHttpHeaders {
  return Object.fromEntries(
    sets.flatMap((headers) => Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
  );
}

/** The bytes of a body; names their type and length in the headers unless they do already. */
function encode(body: unknown, headers: OutgoingHttpHeaders): Buffer | undefined {
  if (body === undefined) return undefined;
  const isText = typeof body === 'string';
  if (!isText && !Buffer.isBuffer(body)) headers['content-type'] ??= 'application/json';
  const content = Buffer.isBuffer(body) ? body : Buffer.from(isText ? body : JSON.stringify(body));
  headers['content-length'] ??= content.length;
  return content;
}
