import type { IncomingMessage } from 'node:http';
import { MisdirectedException, type NestMiddleware } from '@nestjs/common';

const USUAL_PORT = 80;

/**
 * Refuses requests whose `Host` header names a host that is not ours. An attacker can let a name of his own resolve to
 * this machine (DNS rebinding). For the browser, his page and this application then have the same origin.
 */
export class HostMiddleware implements NestMiddleware {
  /**
   * @param names the names of this server, without the port on which it listens
   * @param hosts other hosts, as in a URL: `demo.example`, or `demo.example:8443`
   */
  constructor(
    private readonly names: readonly string[],
    private readonly hosts: readonly string[],
  ) {}

  use({ headers, socket }: IncomingMessage, _: unknown, next: (error?: Error) => void): void {
    const host = headers.host?.toLowerCase();
    if (host && (this.hosts.includes(host) || this.#isOwn(host, socket.localPort))) return next();
    next(
      new MisdirectedException(
        `The Host header is ${JSON.stringify(host)}: if this is a name of the demo, add it to the environment variable HOSTS`,
      ),
    );
  }

  #isOwn(host: string, port?: number): boolean {
    return this.names.some((name) => host === `${name}:${port}` || (port === USUAL_PORT && host === name));
  }
}
