import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** Where an identity provider posts its logout tokens, and its events. */
export const LOGOUT_PATH = '/session/provider/logout';
export const EVENTS_PATH = '/session/provider/events';

/** A logout token, or an event, that came by, and the status that the application responded with. */
export interface Told {
  readonly header: object;
  readonly claims: { readonly iat: number; readonly events: object };
  /** The body of the request. */
  readonly body: string;
  readonly status: number;
}

/** Stands in front of an application as a reverse proxy does, and records what a provider posts. */
export class LogoutProxy {
  /** In the order of the responses. */
  readonly logouts: Told[] = [];
  readonly events: Told[] = [];

  private constructor(
    private readonly port: number,
    private readonly server: Server,
  ) {
    server.on('request', (from: IncomingMessage, to: ServerResponse) => void this.#forward(from, to));
  }

  /** @param port where the application listens, or will listen */
  static async start(port: number): Promise<LogoutProxy> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new LogoutProxy(port, server);
  }

  get origin(): string {
    return `http://localhost:${(this.server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    const closed = once(this.server, 'close');
    this.server.close();
    this.server.closeAllConnections();
    await closed;
  }

  async #forward(from: IncomingMessage, to: ServerResponse): Promise<void> {
    const { url, method, headers } = from;
    const body = await buffer(from);
    const onward = request({ port: this.port, path: url, method, headers: { ...headers, connection: 'close' } });
    onward.on('error', () => to.writeHead(502).end());
    onward.on('response', (response) => {
      const status = response.statusCode!;
      this.#record(url!, body.toString(), status);
      to.writeHead(status, response.headers);
      response.pipe(to);
    });
    onward.end(body);
  }

  #record(path: string, body: string, status: number): void {
    if (path === LOGOUT_PATH) {
      const token = new URLSearchParams(body).get('logout_token') ?? '';
      this.logouts.push({ ...decoded(token), body, status });
    }
    if (path === EVENTS_PATH) this.events.push({ ...decoded(body), body, status });
  }
}

function decoded(token: string): Pick<Told, 'header' | 'claims'> {
  const parts = token.split('.').slice(0, 2);
  const [header, claims] = parts.map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()) as object);
  return { header: header!, claims: claims as Told['claims'] };
}
