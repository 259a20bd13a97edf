import type { IncomingMessage } from 'node:http';
import { Injectable } from '@nestjs/common';
import { isSecure } from '../resolvers/request-origin.js';

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
    if (origin === undefined || this.#listed.has(origin)) return true;
    const page = URL.canParse(origin) ? new URL(origin) : undefined;
    if (!page || host === undefined || (isSecure(request) && page.protocol !== 'https:')) return false;
    // Behind a proxy that ends TLS, only the page knows the scheme, and with it the port that a URL leaves out.
    return ['http:', 'https:'].includes(page.protocol) && hostIn(`${page.protocol}//${host}`) === page.host;
  }
}

function hostIn(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).host : undefined;
}
