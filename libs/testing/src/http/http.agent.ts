import { Agent, type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http';
import type { INestApplication } from '@nestjs/common';
import { SessionIdResolver } from '@nest-session/core';
import { CookieJar, MemoryCookieStore } from 'tough-cookie';
import { clockOf } from '../clock/test-clock.module.js';
import { DeviceKey } from './device-key.js';

/** What a script of a page on https sends, behind a proxy that ends TLS. */
const OF_BROWSERS = { 'sec-fetch-site': 'same-origin', 'x-forwarded-proto': 'https' };

/** The options of a client. They apply to all of its requests. */
export interface HttpAgentOptions {
  /** Headers of every request. The headers of a single request override them. */
  readonly headers?: OutgoingHttpHeaders | undefined;
  /** Keeps connections open between requests, until `close()`. @default false */
  readonly keepAlive?: boolean | undefined;
  /**
   * Treats cookies as a browser on https does. Use it as if a proxy in front of the application ended TLS.
   * @default false
   */
  readonly secure?: boolean | undefined;
  /**
   * Response headers to send back with every later request, as clients of a `HeaderSessionIdResolver` do. An empty
   * value removes a header.
   * @default none
   */
  readonly tokenHeaders?: readonly string[] | undefined;
  /**
   * Binds its sessions, as Chromium does where the application has the option `deviceBound`: it registers a key when a
   * response says so, and proves it before a request whose proof is over. It sends what a browser and the proxy that
   * ends TLS send along, so it is also `secure`; let the application trust the proxy on loopback. `fork()` copies the
   * cookies, and no key: what malware gets. @default false
   */
  readonly bindsSessions?: boolean | undefined;
}

/** The options of one request. */
export interface HttpRequestOptions {
  /** Headers of this request. They override the headers of the client, such as `cookie`. */
  readonly headers?: OutgoingHttpHeaders | undefined;
  /** The body. A string or Buffer is sent unchanged, and anything else as JSON. */
  readonly body?: unknown;
  /** Called when the headers of the response have arrived, before the body. If it throws, the request rejects. */
  readonly onHead?: ((head: IncomingMessage) => void) | undefined;
  /** Aborts the request. The request then rejects, and its connection is closed. */
  readonly signal?: AbortSignal | undefined;
}

/** A response with its whole body. */
export interface HttpResponse {
  /** The status code. */
  readonly status: number;
  /** The headers by their names in lower case, as in Node.js. */
  readonly headers: IncomingHttpHeaders;
  /** The alternating names and values of the headers, as they were sent. */
  readonly rawHeaders: readonly string[];
  /** The values of the `Set-Cookie` headers. */
  readonly setCookies: readonly string[];
  /** The body as UTF-8. */
  readonly text: string;
  /** Parses the body as JSON. It does not check that the result is a `T`. @throws SyntaxError if it is not JSON */
  json<T = unknown>(): T;
}

/**
 * A client that keeps cookies as a browser does, and follows no redirects. Any number of requests may run at once. The
 * jar has the cookies of a response as soon as its headers have arrived. Unlike with the global `fetch`, an aborted
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
  readonly #key: DeviceKey | undefined;
  /** By which its proofs end. */
  #clock: { now(): number } = Date;

  /**
   * A client without cookies of the server at this origin.
   * @param origin such as `http://127.0.0.1:3000`
   * @throws TypeError for an origin of https
   */
  constructor(origin: string, options: HttpAgentOptions = {}) {
    this.#server = new URL(origin);
    if (this.#server.protocol !== 'http:') throw new TypeError(notHttp(this.#server));
    const { bindsSessions = false, keepAlive = false } = options;
    this.#options = bindsSessions
      ? { ...options, secure: true, headers: { ...OF_BROWSERS, ...options.headers } }
      : options;
    this.#key = bindsSessions
      ? new DeviceKey(async (path, headers) => readWhole(await this.#send('POST', path, { headers })))
      : undefined;
    this.#agent = new Agent({ keepAlive });
  }

  /**
   * Creates a client of a Nest application. If the application does not listen yet, it starts to listen on a free port.
   * The client keeps session tokens wherever the application's `SessionIdResolver` puts them, in cookies or in headers.
   */
  static async for(app: INestApplication, options: HttpAgentOptions = {}): Promise<HttpAgent> {
    await listening(app);
    const { headers } = app.get<SessionIdResolver>(SessionIdResolver, { strict: false });
    const tokenHeaders = headers.filter((name) => name.toLowerCase() !== 'cookie');
    const agent = new HttpAgent(await app.getUrl(), { tokenHeaders, ...options });
    agent.#clock = clockOf(app.getHttpServer() as object);
    return agent;
  }

  /** The origin of the application as the client sees it. It is https if the client is `secure`. */
  get origin(): string {
    return `${this.#options.secure ? 'https:' : 'http:'}//${this.#server.host}`;
  }

  /** Returns another client with a copy of the cookies and tokens of this one. The two do not share later changes. */
  fork(): HttpAgent {
    const fork = new HttpAgent(this.#server.href, this.#options);
    fork.#clock = this.#clock;
    this.#jar.cloneSync(fork.#store);
    for (const [name, token] of this.#tokens) fork.#tokens.set(name, token);
    return fork;
  }

  /** All cookies of the jar by name, whatever their paths. */
  get cookies(): Record<string, string> {
    const cookies = this.#jar.getCookiesSync(this.#cookieUrl('/'), { allPaths: true });
    return Object.fromEntries(cookies.map(({ key, value }) => [key, value]));
  }

  /** The value of a cookie in the jar, or undefined if there is none. */
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

  /**
   * The headers, in lower case and each as one text, that this client would send to a path. Pass them to other clients,
   * such as supertest.
   */
  headersFor(path: string): Record<string, string> {
    const headers = Object.entries(this.#headersFor(path)).filter(([, value]) => value !== undefined);
    return Object.fromEntries(headers.map(([name, value]) => [name, textOf(name, value)]));
  }

  #headersFor(path: string): OutgoingHttpHeaders {
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

  /** Sends a GET request. See `request()`. */
  get(path: string, options?: HttpRequestOptions): Promise<HttpResponse> {
    return this.request('GET', path, options);
  }

  /** Sends a POST request with a body. See `request()`. */
  post(path: string, body?: unknown, options?: HttpRequestOptions): Promise<HttpResponse> {
    return this.request('POST', path, { ...options, body });
  }

  /** Resolves when the whole body has arrived, whatever the status. Rejects if the connection breaks before that. */
  async request(method: string, path: string, options: HttpRequestOptions = {}): Promise<HttpResponse> {
    await this.#key?.prove(this.#clock.now());
    const response = await readWhole(await this.#send(method, path, options));
    await this.#key?.takeOffer(response.headers, this.#clock.now());
    return response;
  }

  /** Resolves to a response when its headers have arrived. Read the body yourself, or close it with `destroy()`. */
  async open(method: string, path: string, options: HttpRequestOptions = {}): Promise<IncomingMessage> {
    await this.#key?.prove(this.#clock.now());
    const message = await this.#send(method, path, options);
    await this.#key?.takeOffer(message.headers, this.#clock.now());
    return message;
  }

  #send(method: string, path: string, options: HttpRequestOptions): Promise<IncomingMessage> {
    const { body, onHead, signal } = options;
    const headers = lowerCased(this.#headersFor(path), { ...options.headers });
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
        try {
          this.keep(message.headers, path);
          onHead?.(message);
          resolve(message);
        } catch (error) {
          // Thrown out of an event, it would end the process, and the request would never settle.
          message.destroy();
          reject(error as Error);
        }
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

async function readWhole(message: IncomingMessage): Promise<HttpResponse> {
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

function notHttp({ origin }: URL): string {
  return (
    `HttpAgent sends requests over http, and not to ${origin}: test the application without \`httpsOptions\`, and set ` +
    'the option `secure` of the agent, so that it treats cookies as a browser on https does'
  );
}

function lowerCased(...sets: OutgoingHttpHeaders[]): OutgoingHttpHeaders {
  return Object.fromEntries(
    sets.flatMap((headers) => Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
  );
}

/** The value of a header as other clients take it: one text, also where the header has several values. */
function textOf(name: string, value: OutgoingHttpHeaders[string]): string {
  return [value].flat().join(name === 'cookie' ? '; ' : ', ');
}

/** Encodes a body. Sets its type and length in the headers unless they are set. */
function encode(body: unknown, headers: OutgoingHttpHeaders): Buffer | undefined {
  if (body === undefined) return undefined;
  const isText = typeof body === 'string';
  if (!isText && !Buffer.isBuffer(body)) headers['content-type'] ??= 'application/json';
  const content = Buffer.isBuffer(body) ? body : Buffer.from(isText ? body : JSON.stringify(body));
  headers['content-length'] ??= content.length;
  return content;
}

/** By server: what the application has begun, and would do a second time. */
const starts = new WeakMap<object, Promise<unknown>>();

/** Makes the application listen on a free port unless it does, once for all clients that are created meanwhile. */
async function listening(app: INestApplication): Promise<void> {
  const server = app.getHttpServer() as { readonly listening: boolean };
  const start = starts.get(server) ?? (server.listening ? undefined : app.listen(0, '127.0.0.1'));
  if (!start) return;
  starts.set(server, start);
  await start.finally(() => starts.delete(server));
}
