import type { IncomingMessage } from 'node:http';
import { MisdirectedException, type NestMiddleware } from '@nestjs/common';
import { OTHER_HOSTS, OWN_NAMES } from './address.js';

const USUAL_PORT = 80;

/**
 * Refuses requests whose `Host` header names a foreign host. An attacker can make their own host name resolve to this
 * machine (DNS rebinding). For the browser, the attacker's page and this application then have the same origin.
 */
export class HostMiddleware implements NestMiddleware {
  use({ headers, socket }: IncomingMessage, _: unknown, next: (error?: Error) => void): void {
    const host = headers.host?.toLowerCase();
    if (host && (OTHER_HOSTS.includes(host) || this.#isOwn(host, socket.localPort))) return next();
    const remedy = 'if this is a name of the demo, add it to the environment variable HOSTS';
    next(new MisdirectedException(`The Host header is ${JSON.stringify(host)}: ${remedy}`));
  }

  #isOwn(host: string, port?: number): boolean {
    return OWN_NAMES.some((name) => host === `${name}:${port}` || (port === USUAL_PORT && host === name));
  }
}
