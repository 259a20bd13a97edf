import type { IncomingMessage } from 'node:http';
import type { CookiePolicy } from './cookie.validation.js';
import { WarnOnce } from '../logging/warn-once.js';
import { hostOf, isForwardedFromHttps, isLocal, isSecure, isWithin } from './proxied-request.js';
import type { TokenRefusal } from './session-id.resolver.js';
import { shownText } from '../logging/shown-error.js';

const REASONS: Readonly<Record<TokenRefusal, string>> = {
  malformed:
    'If this continues, another application on a host of the same domain sets a cookie of the same name: then set another ' +
    '`cookie.name`',
  unsigned:
    'Either it was set before `cookie.signingKeys`, and its user has to sign in again, or a client guesses tokens',
  'badly signed':
    'If this continues, a signing key was replaced in one step: on every instance, put the new key first in ' +
    '`cookie.signingKeys` and keep the old one behind it until its cookies have expired',
};

/** Warns of cookies that browsers drop, and of cookies that are ignored. Logs each reason once, and never the value. */
export class CookieWarnings {
  readonly #log = new WarnOnce();

  constructor(private readonly name: string) {}

  /** Checks a cookie that is being set. */
  ofSent(request: IncomingMessage, { secure, domain }: CookiePolicy): void {
    const isHttps = isSecure(request) || isForwardedFromHttps(request);
    const host = hostOf(request);
    if (secure === 'auto' && isHttps && !isSecure(request)) {
      this.#once(
        'untrusted proxy',
        'is set without Secure: X-Forwarded-Proto says https, but no proxy is trusted, so the request counts as ' +
          "http. Behind a proxy that ends TLS, name its address: app.set('trust proxy', ...) on Express, " +
          'new FastifyAdapter({ trustProxy: ... }) on Fastify; or set `cookie.secure` to true',
      );
    }
    if (secure === true && !isHttps && host !== undefined && !isLocal(host)) {
      this.#once(
        'secure over http',
        'is set with Secure on a response to a request that came over http: browsers drop it. Serve the application ' +
          "over https, or set `cookie.secure` to 'auto'",
      );
    }
    if (typeof domain === 'string' && host !== undefined && !isWithin(host, domain)) {
      this.#once(
        'foreign domain',
        `is set for the domain ${shownText(domain)} on a response to a request for another host: browsers drop it. ` +
          'Set `cookie.domain` to a domain that contains all hosts of the application, or to a list of domains. ' +
          'Behind a proxy, make the proxy forward the Host header, or trust it',
      );
    }
  }

  /** Reports a cookie that was ignored without a look-up. */
  ofRefused(refusal: TokenRefusal): void {
    this.#once(refusal, `of a request was ignored: it is ${refusal}. ${REASONS[refusal]}`);
  }

  /** Reports a request with so many cookies of the name that some were ignored. */
  ofTooMany(most: number): void {
    this.#once(
      'too many',
      `came more than ${most} times in one request, so the others were ignored. Another host of the same domain sets ` +
        'cookies of this name: choose a name that begins with `__Host-`, which no other host can set',
    );
  }

  #once(cause: string, diagnosis: string): void {
    this.#log.warn(cause, `The cookie ${this.name} ${diagnosis}`);
  }
}
