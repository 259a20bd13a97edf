import { Agent, type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http';
import type { INestApplication } from '@nestjs/common';
import { SessionIdResolver } from '@nest-session/core';
import { CookieJar, MemoryCookieStore } from 'tough-cookie';

/** The options of a client, for all of its requests. */
export interface HttpAgentOptions {
  /** Headers of every request; those of a single request override them. */
  readonly headers?: OutgoingHttpHeaders | undefined;
  /** Keeps connections open between requests, until `close()`. @default false */
  readonly keepAlive?: boolean | undefined;
  /** Treats cookies as a browser on https does, as behind a proxy that ends TLS. @default false */
  readonly secure?: boolean | undefined;
  /**
   * Response headers to send back with every later request, as clients of a `HeaderSessionIdResolver` do; an empty value
   * removes one. @default none
   */
  readonly tokenHeaders?: readonly string[] | undefined;
}

/** The options of one request. */
export interface HttpRequestOptions {
  /** Headers of this request; they override those of the client, such as `cookie`. */
  readonly headers?: OutgoingHttpHeaders | undefined;
  /** A string or Buffer is sent as it is, anything else as JSON. */
  readonly body?: unknown;
  /** Called when the headers of the response have arrived, before the body. */
  readonly onHead?: ((head: IncomingMessage) => void) | undefined;
  /** Aborts the request: it rejects, and the connection is closed. */
  readonly signal?: AbortSignal | undefined;
}

/** A response with its whole body. */
export interface HttpResponse {
  /** The status code. */
  readonly status: number;
  /** The headers by name in lower case, as Node.js has them. */
  readonly headers: IncomingHttpHeaders;
  /** Names and values of the headers in turn, as they were sent. */
  readonly rawHeaders: readonly string[];
  /** The values of the `Set-Cookie` headers. */
  readonly setCookies: readonly string[];
  /** The body as UTF-8. */
  readonly text: string;
  /** The body as JSON; nothing checks that it is a `T`. @throws SyntaxError when it is not JSON */
  json<T = unknown>(): T;
}

/**
 * A client that keeps cookies as a browser does and follows no redirect. Any number of requests may run at once. The
 * cookies of a response are in the jar as soon as its headers have arrived. Unlike with the global `fetch`, an aborted
 * request leaves nothing behind that delays the closing of a server.
 */
export class HttpAgent {
  readonly #server: URL;
  readonly #options: HttpAgentOptions;
  readonly #store = new MemoryCookieStore();
  // Browsers accept Secure cookies over http on localhost; here, that would hide a mistake that fails elsewhere.
  readonly #jar = new CookieJar(this.#store, { allowSecureOnLocal: false, enforceSecureOriginOnStorage: true });
  readonly #tokens = new Map<string, string>();
  readonly #agent: Agent;

  /** @param origin such as `http://127.0.0.1:3000` */
  constructor(origin: string, options: HttpAgentOptions = {}) {
    this.#server = new URL(origin);
    this.#options = options;
    this.#agent = new Agent({ keepAlive: options.keepAlive ?? false });
  }

  /**
   * A client of a Nest application, which listens on a free port from now on unless it listens already. It keeps the
   * tokens of sessions wherever the application's `SessionIdResolver` puts them: in cookies or in headers.
   */
  static async for(app: INestApplication, options: HttpAgentOptions = {}): Promise<HttpAgent> {
    const server = app.getHttpServer() as { readonly listening: boolean };
    if (!server.listening) await app.listen(0, '127.0.0.1');
    const { headers } = app.get<SessionIdResolver>(SessionIdResolver, { strict: false });
    const tokenHeaders = headers.filter((name) => name.toLowerCase() !== 'cookie');
    return new HttpAgent(await app.getUrl(), { tokenHeaders, ...options });
  }

  /** The address of the application as the client sees it: https when the client is `secure`. */
  get origin(): string {
    return `${this.#options.secure ? 'https:' : 'http:'}//${this.#server.host}`;
  }

  /** Another client, with a copy of the cookies and tokens of this one; later changes are not shared. */
  fork(): HttpAgent {
    const fork = new HttpAgent(this.#server.href, this.#options);
    this.#jar.cloneSync(fork.#store);
    for (const [name, token] of this.#tokens) fork.#tokens.set(name, token);
    return fork;
  }

  /** All cookies of the jar by name, whatever their paths. */
  get cookies(): Record<string, string> {
    const cookies = this.#jar.getCookiesSync(this.#cookieUrl('/'), { allPaths: true });
    return Object.fromEntries(cookies.map(({ key, value }) => [key, value]));
  }

  /** The value of a cookie in the jar; undefined when there is none. */
  cookie(name: string): string | undefined {
    return this.cookies[name];
  }

  /** Puts a cookie into the jar, as a `Set-Cookie` header with this value would. */
  setCookie(setCookie: string): void {
    this.#jar.setCookieSync(setCookie, this.#cookieUrl('/'));
  }

  /** Empties the jar. */
  clearCookies(): void {
    this.#jar.removeAllCookiesSync();
  }

  /** The headers that this client would send to this path, in lower case: for other clients, such as supertest. */
  headersFor(path: string): OutgoingHttpHeaders {
    const cookie = this.#jar.getCookieStringSync(this.#cookieUrl(path));
    const kept = { ...Object.fromEntries(this.#tokens), ...(cookie !== '' && { cookie }) };
    return lowerCased(kept, { ...this.#options.headers });
  }

  /** Stores the cookies and `tokenHeaders` of a response with these headers. */
  keep(headers: IncomingHttpHeaders | OutgoingHttpHeaders, path = '/'): void {
    for (const setCookie of [headers['set-cookie'] ?? []].flat()) {
      this.#jar.setCookieSync(String(setCookie), this.#cookieUrl(path), { ignoreError: true });
    }
    for (const name of this.#options.tokenHeaders?.map((each) => each.toLowerCase()) ?? []) {
      const token = headers[name];
      if (token === '') this.#tokens.delete(name);
      else if (token !== undefined) this.#tokens.set(name, String(token));
    }
  }

  /** A GET request, see `request()`. */
  get(path: string, options?: HttpRequestOptions): Promise<HttpResponse> {
    return this.request('GET', path, options);
  }

  /** A POST request with a body, see `request()`. */
  post(path: string, body?: unknown, options?: HttpRequestOptions): Promise<HttpResponse> {
    return this.request('POST', path, { ...options, body });
  }

  /** Resolves when the whole body has arrived, whatever the status; rejects when the connection breaks before. */
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

  /** Resolves when the headers have arrived, to a response whose body you read yourself; `destroy()` closes it. */
  open(method: string, path: string, options: HttpRequestOptions = {}): Promise<IncomingMessage> {
    const { body, onHead, signal } = options;
    const headers = lowerCased(this.headersFor(path), { ...options.headers });
    const content = encode(body, headers);
    return new Promise((resolve, reject) => {
      const { hostname, port } = this.#server;
      // An IPv6 address has brackets in a URL, but not for a socket.
      const host = hostname.replace(/^\[(.*)\]$/, '$1');
      const sent = request({ agent: this.#agent, host, port, method, path, headers, signal });
      sent.once('error', reject);
      sent.once('response', (message) => {
        // After the headers, the message emits the error.
        sent.on('error', () => {});
        message.on('error', () => {});
        this.keep(message.headers, path);
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
    return `${this.origin}${path}`;
  }
}

function lowerCased(...sets: OutgoingHttpHeaders[]): OutgoingHttpHeaders {
  return Object.fromEntries(
    sets.flatMap((headers) => Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
  );
}

/** The bytes of a body. Sets its type and length in the headers unless they are set. */
function encode(body: unknown, headers: OutgoingHttpHeaders): Buffer | undefined {
  if (body === undefined) return undefined;
  const isText = typeof body === 'string';
  if (!isText && !Buffer.isBuffer(body)) headers['content-type'] ??= 'application/json';
  const content = Buffer.isBuffer(body) ? body : Buffer.from(isText ? body : JSON.stringify(body));
  headers['content-length'] ??= content.length;
  return content;
}
