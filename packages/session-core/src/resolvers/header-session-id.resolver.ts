import type { IncomingMessage, ServerResponse } from 'node:http';
import { InvalidSessionOptionsError } from '../errors/session.errors.js';
import { type SessionToken, sessionTokenOf } from '../session/session-token.js';
import { WarnOnce } from '../logging/warn-once.js';
import { SessionIdResolver, type TokenRefusalListener } from './session-id.resolver.js';

// A header name by RFC 9110, 5.1. TAKEN lists names that control how the message itself is read, and two names that
// every JavaScript object has, so they cannot be looked up in the headers of a request.
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const TAKEN =
  /^(?:connection|content-.*|cookie|host|keep-alive|set-cookie|te|trailer|transfer-encoding|upgrade|vary|constructor|__proto__)$/i;

/**
 * Carries the token in a header of requests and responses, for clients that are not browsers. The response to a request
 * that ended its session has the header with an empty value.
 */
export class HeaderSessionIdResolver extends SessionIdResolver {
  readonly headers: readonly [string];
  readonly #log = new WarnOnce();

  /**
   * Keeps the token in the header of this name, such as `X-Auth-Token`.
   * @throws InvalidSessionOptionsError for a name that such a header cannot have
   */
  constructor(name: string) {
    super();
    const problem = nameProblem(name);
    if (problem !== undefined) throw new InvalidSessionOptionsError('HeaderSessionIdResolver', [problem]);
    this.headers = [name];
  }

  /** A resolver for the header `X-Auth-Token`. */
  static xAuthToken(): HeaderSessionIdResolver {
    return new HeaderSessionIdResolver('X-Auth-Token');
  }

  /** A resolver for the header `Authentication-Info`. */
  static authenticationInfo(): HeaderSessionIdResolver {
    return new HeaderSessionIdResolver('Authentication-Info');
  }

  resolve(request: IncomingMessage, onRefused?: TokenRefusalListener): SessionToken[] {
    const [name] = this.headers;
    const value = request.headers[name.toLowerCase()];
    if (value === undefined || value === '') return [];
    const token = sessionTokenOf(value);
    if (!token && !onRefused?.(request, 'malformed')) {
      this.#log.warn(
        'malformed',
        `A request was treated as a request without a session, because its header ${name} does not hold a session ` +
          'token. Send the header once, with the unchanged value that it had in the last response',
      );
    }
    return token ? [token] : [];
  }

  send(_request: IncomingMessage, response: ServerResponse, token: SessionToken): void {
    response.setHeader(this.headers[0], token.reveal());
  }

  expire(_request: IncomingMessage, response: ServerResponse): void {
    response.setHeader(this.headers[0], '');
  }
}

function nameProblem(name: unknown): string | undefined {
  if (typeof name !== 'string' || !NAME.test(name)) {
    return "The name of the header must be a token of RFC 9110, such as 'X-Auth-Token'.";
  }
  return TAKEN.test(name)
    ? `The header ${name} already has a meaning: use another header, such as 'X-Auth-Token'.`
    : undefined;
}
