import { once } from 'node:events';
import { type IncomingMessage, request as requestOf, type ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';

/** `refuse`: it answers 503 itself; `lose`: the application has answered, and the client hears nothing. */
type GatewayFault = 'refuse' | 'lose';

/**
 * Ends TLS in front of an application, and answers 503 while there is none, as load balancers do. Of the host
 * `idp.example`, it has a page with a link to what the query says.
 */
export class TlsGateway {
  /** The origin of the application. */
  target: string | undefined;
  /** What it has let through, such as `GET /inside 200`, in the order of the responses. */
  readonly seen: string[] = [];
  /** Those of `seen` that the client has not heard. */
  readonly lost: string[] = [];
  #fault: { readonly what: GatewayFault; readonly path: string; times: number } | undefined;

  private constructor(private readonly server: Server) {
    server.on('request', (request, response) => this.#serve(request, response));
  }

  static async start(certificate: { readonly key: string; readonly cert: string }): Promise<TlsGateway> {
    const server = createServer(certificate).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new TlsGateway(server);
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** Does so with the next requests whose path begins like this, until `heal()`. */
  break(what: GatewayFault, path: string, times: number): void {
    this.#fault = { what, path, times };
  }

  heal(): void {
    this.#fault = undefined;
  }

  async stop(): Promise<void> {
    this.server.close();
    this.server.closeAllConnections();
    await once(this.server, 'close');
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    if (request.headers.host!.startsWith('idp.example')) {
      const to = new URL(request.url!, 'https://idp.example').searchParams.get('to');
      return void response.setHeader('Content-Type', 'text/html').end(`<a href="${to}">go</a>`);
    }
    const fault = this.#fault && this.#fault.times > 0 && request.url!.startsWith(this.#fault.path) && this.#fault;
    if (fault) fault.times--;
    if (!this.target || (fault && fault.what === 'refuse')) return void response.writeHead(503).end();
    const { method, url, headers } = request;
    const sent = requestOf(this.target + url!, { method, agent: false });
    for (const [name, value] of Object.entries({ ...headers, 'x-forwarded-proto': 'https' }))
      sent.setHeader(name, value!);
    sent.once('error', () => (response.headersSent ? response.destroy() : response.writeHead(503).end()));
    sent.once('response', (answer) => {
      const seen = `${method} ${url!.replace(/\/register\/.*/, '/register')} ${answer.statusCode}`;
      this.seen.push(seen);
      if (fault) this.lost.push(seen);
      if (!fault) return void answer.pipe(response.writeHead(answer.statusCode!, answer.rawHeaders));
      answer.resume().once('close', () => request.socket.destroy());
    });
    request.pipe(sent);
  }
}
