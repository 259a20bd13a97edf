import type { IncomingMessage } from 'node:http';
import { Injectable } from '@nestjs/common';
import { isOriginOf } from '../resolvers/request-origin.js';

/**
 * From which pages browsers may open connections. A browser sends the cookies of a site with every WebSocket that a page
 * opens to it, whatever the site of the page, and no rule of CORS holds: without this check, any page could act in the
 * session of its visitor.
 */
@Injectable()
export class UpgradeOrigins {
  readonly #listed = new Set<string>();

  /** Allows pages of other origins, such as `https://app.example.com`. */
  allow(origins: Iterable<string>): void {
    for (const origin of origins) this.#listed.add(origin);
  }

  /** Whether a request comes from a page of its own host or of a listed origin, or from no page: no Origin header. */
  allows(request: IncomingMessage): boolean {
    const { origin, host } = request.headers;
    return origin === undefined || this.#listed.has(origin) || isOriginOf(origin, request, [host]);
  }
}
