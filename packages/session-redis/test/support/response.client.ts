import { once } from 'node:events';
import { Agent, type IncomingHttpHeaders, type IncomingMessage, request as httpRequest } from 'node:http';
import { type ClientHttp2Session, connect } from 'node:http2';
import { setImmediate } from 'node:timers/promises';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';

export interface SentRequest {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface ReceivedResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly setCookies: readonly string[];
  readonly trailers: Readonly<Record<string, unknown>>;
  /** The statuses of the informational responses before it. */
  readonly informational: readonly number[];
  /** Uncompressed. */
  readonly text: string;
}

export function sessionCookiesOf({ setCookies }: ReceivedResponse): string[] {
  return setCookies.filter((cookie) => cookie.startsWith('SESSION='));
}

/** Sends requests to an application, over HTTP or without a connection. */
export interface ResponseClient {
  /** @param onHead called when the final headers have arrived, before the body */
  ask(question: SentRequest, onHead?: () => void): Promise<ReceivedResponse>;
  close(): void;
}

/** Over keep-alive connections. Reads slowly. */
export class HttpClient implements ResponseClient {
  readonly #agent: Agent;

  constructor(private readonly origin: string) {
    this.#agent = new Agent({ keepAlive: true });
  }

  async ask({ method = 'GET', path, headers, body }: SentRequest, onHead?: () => void): Promise<ReceivedResponse> {
    const informational: number[] = [];
    const sent = httpRequest(this.origin + path, { agent: this.#agent, method, headers: { ...headers } });
    sent.on('information', ({ statusCode }) => informational.push(statusCode));
    sent.end(body);
    const [message] = (await once(sent, 'response')) as [IncomingMessage];
    onHead?.();
    const chunks: Buffer[] = [];
    for await (const chunk of message) {
      chunks.push(chunk as Buffer);
      await setImmediate();
    }
    const { statusCode = 0, trailers } = message;
    return { status: statusCode, informational, trailers, ...content(message.headers, Buffer.concat(chunks)) };
  }

  close(): void {
    this.#agent.destroy();
  }
}

export class Http2Client implements ResponseClient {
  readonly #session: ClientHttp2Session;

  constructor(origin: string) {
    this.#session = connect(origin);
  }

  async ask({ method = 'GET', path, headers, body }: SentRequest, onHead?: () => void): Promise<ReceivedResponse> {
    const informational: number[] = [];
    let trailers = {};
    const stream = this.#session.request({ ...headers, ':method': method, ':path': path });
    stream.on('headers', (head: IncomingHttpHeaders) => informational.push(Number(head[':status'])));
    stream.on('trailers', (received: object) => (trailers = received));
    stream.end(body);
    const [head] = (await once(stream, 'response')) as [IncomingHttpHeaders];
    onHead?.();
    const chunks: Buffer[] = [];
    for await (const chunk of stream) {
      chunks.push(chunk as Buffer);
      await setImmediate();
    }
    return { status: Number(head[':status']), informational, trailers, ...content(head, Buffer.concat(chunks)) };
  }

  close(): void {
    this.#session.close();
  }
}

/** Without a connection, as tests of Fastify applications do. */
export class InjectClient implements ResponseClient {
  constructor(private readonly app: NestFastifyApplication) {}

  async ask({ method = 'GET', path, headers, body }: SentRequest, onHead?: () => void): Promise<ReceivedResponse> {
    const response = await this.app.inject({
      method: method as 'GET',
      url: path,
      headers: { ...headers },
      ...(body !== undefined && { payload: body }),
    });
    onHead?.();
    const { statusCode: status, trailers } = response;
    return {
      status,
      informational: [],
      trailers,
      ...content(response.headers as IncomingHttpHeaders, response.rawPayload),
    };
  }

  close(): void {}
}

function content(headers: IncomingHttpHeaders, body: Buffer) {
  return { headers, setCookies: [headers['set-cookie'] ?? []].flat(), text: uncompressed(headers, body).toString() };
}

function uncompressed(headers: IncomingHttpHeaders, body: Buffer): Buffer {
  if (body.length === 0) return body;
  if (headers['content-encoding'] === 'gzip') return gunzipSync(body);
  if (headers['content-encoding'] === 'br') return brotliDecompressSync(body);
  return body;
}
