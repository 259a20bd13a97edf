import type { IncomingMessage } from 'node:http';
import type { ResolvedSessionOptions } from '../configuration/session.options.js';
import { isOriginOf, mayHaveBeenChanged } from '../resolvers/proxied-request.js';

/**
 * From which pages browsers may open connections. A browser sends the cookies of a site with every WebSocket that a
 * page opens to it, whatever the site of the page, and no rule of CORS holds: without this check, any page could act in
 * the session of its visitor.
 */
export class UpgradeOrigins {
  readonly #listed = new Set<string>();
  readonly #isHttpsOnly: boolean;

  constructor(options?: Pick<ResolvedSessionOptions, 'cookie'>) {
    this.#isHttpsOnly = options?.cookie.secure === true;
  }

  allow(origins: Iterable<string>): void {
    for (const origin of origins) this.#listed.add(origin);
  }

  /**
   * Whether a request comes from a page of its own host or of a listed origin, or from no page: it has no Origin, and
   * the browser does not tell of another site, whose script may have caused it.
   */
  allows(request: IncomingMessage): boolean {
    const { origin, host, 'sec-fetch-site': site } = request.headers;
    if (origin === undefined) return site === undefined || site === 'same-origin' || site === 'none';
    if (this.#listed.has(origin)) return true;
    // Behind a proxy, an upgrade does not tell: it never reaches the platform, which knows what proxies to trust.
    return isOriginOf(origin, request, [host]) && !(this.#isHttpsOnly && mayHaveBeenChanged(origin, request));
  }
}
