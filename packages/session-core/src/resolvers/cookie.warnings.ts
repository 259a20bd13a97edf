import type { IncomingMessage } from 'node:http';
import type { CookieRefusal } from './cookie.codec.js';
import type { ResolvedCookieAttributes } from './cookie.options.js';
import { WarnOnce } from '../logging/warn-once.js';
import { hostOf, isForwardedFromHttps, isLocal, isSecure, isWithin } from './request-origin.js';

const REASONS: Readonly<Record<CookieRefusal, string>> = {
  malformed:
    'If that goes on, another application on a host of the same domain sets a cookie of that name: give yours another ' +
    '`cookie.name`; or `cookie.base64` was changed',
  unsigned: 'It was set before `cookie.signingKeys` was, or somebody tries tokens: whoever holds it signs in again',
  'badly signed':
    'If that goes on, a key was replaced at once: put the new one first in `cookie.signingKeys` and keep the old one ' +
    'behind it until its cookies have ended, in all instances',
};

/** Says in the log why browsers will not keep, or did not bring, a cookie: once for each reason. Names no value. */
export class CookieWarnings {
  readonly #log = new WarnOnce();

  constructor(private readonly name: string) {}

  /** A cookie that is being set. */
  ofSent(request: IncomingMessage, { secure, domain }: ResolvedCookieAttributes): void {
    const isHttps = isSecure(request) || isForwardedFromHttps(request);
    const host = hostOf(request);
    if (secure === 'auto' && isHttps && !isSecure(request)) {
      this.#once(
        'untrusted proxy',
        'is set without Secure: X-Forwarded-Proto says https, but no proxy is trusted, so the request counts as http. ' +
          "Behind a proxy that ends TLS, name its address: app.set('trust proxy', ...) on Express, " +
          'new FastifyAdapter({ trustProxy: ... }) on Fastify; or set `cookie.secure` to true',
      );
    }
    if (secure === true && !isHttps && host !== undefined && !isLocal(host)) {
      this.#once(
        'secure over http',
        'is set with Secure on an answer to a request that came over http: browsers drop it. Serve the application over ' +
          "https, or set `cookie.secure` to 'auto'",
      );
    }
    if (domain !== undefined && host !== undefined && !isWithin(host, domain)) {
      this.#once(
        'foreign domain',
        `is set for the domain ${domain} on an answer to a request for another host: browsers drop it. Set ` +
          '`cookie.domain` to a domain of all hosts of the application, or `cookie.domainPattern`; behind a proxy, have ' +
          'it pass on the Host header, or trust it',
      );
    }
  }

  /** A cookie that a request brought and that opens nothing, whatever is stored. */
  ofRefused(value: string, refusal: CookieRefusal): void {
    // What some clients keep of a cookie that they were told to forget.
    if (value !== '') this.#once(refusal, `of a request was ignored: it is ${refusal}. ${REASONS[refusal]}`);
  }

  /** `cookie.attributes` has thrown, or returned what is refused at start, too. */
  ofAttributes(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    this.#once('attributes', `is set with the configured attributes: \`cookie.attributes\` failed: ${reason}`);
  }

  #once(cause: string, diagnosis: string): void {
    this.#log.warn(cause, `The cookie ${this.name} ${diagnosis}`);
  }
}
