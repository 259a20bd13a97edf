import type { IncomingMessage, ServerResponse } from 'node:http';
import { shownStack } from '../logging/shown-error.js';
import { logger } from '../logging/session.logger.js';
import { appendVary, forbidSharing, forbidStoring } from '../resolvers/response-headers.js';
import type { SessionToken } from '../session/session-token.js';
import { bodyWatchOf, isServedWithoutClient, repeatClose } from './left-client.js';
import type { RequestSessions } from './request-sessions.js';
import { ResponseCommit } from './response-commit.js';
import { isDestroyed } from './response-hold.js';
import { sendRenewalPage } from '../device/renewal-page.js';
import { sessionProperty } from './session-property.js';

/** Serves requests, as the filter of Spring Session does: what each goes through stands in this file, in its order. */
export class RequestServer {
  /** Defined once the module of the store is constructed. */
  #store: Pick<RequestSessions, 'loader' | 'parts' | 'endpoints'> | undefined;
  /** Whether a touch need not wait until the route is known. */
  #touchesAtOnce = false;

  constructor(private readonly sessions: RequestSessions) {}

  open(touchesAtOnce: boolean): void {
    const { loader, parts, endpoints } = this.sessions;
    this.#store = { loader, parts, endpoints };
    this.#touchesAtOnce = touchesAtOnce;
  }

  /** Finds the tokens, loads the session that they open, and passes the request on. */
  readonly serve = (request: IncomingMessage, response: ServerResponse, next: () => void): void => {
    if (!this.#store) return next();
    const { loader, parts, endpoints } = this.#store;
    // A request that is routed again keeps its session.
    if (ResponseCommit.of(request)?.parts === parts) return next();
    // First, because a 404 would end the binding of a browser.
    if (endpoints?.serves(request, response)) return;
    if (this.sessions.excludes(request)) return next();
    const loading = loader.load(request);
    if (!loading) return this.#enter(new ServedRequest(request, response, parts), next);
    const isBodyLost = bodyWatchOf(request);
    void loading.then((found) => {
      if (isDestroyed(response) && !isServedWithoutClient(request)) return;
      // Nobody is there to be answered, so the connection must not wait for it.
      if (isBodyLost?.()) return void response.destroy();
      if (found.withheld && sendRenewalPage(request, response, parts.resolver.deviceCookie(request)!)) return;
      const served = new ServedRequest(request, response, parts, found);
      const { touch } = served.session;
      // A session with five seconds left must outlive a handler of ten.
      if (this.#touchesAtOnce && !touch.isRolling) void touch.send();
      if (!isDestroyed(response)) return this.#enter(served, next);
      // By then, all have emitted what they emit when a client leaves.
      setImmediate(() => {
        repeatClose(request, response);
        this.#enter(served, next);
      });
    });
  };

  #enter({ request, session, parts }: ServedRequest, next: () => void): void {
    const { properties } = parts.extension;
    if (properties) Object.defineProperties(request, properties);
    else Object.defineProperty(request, 'session', sessionProperty);
    const { scope } = this.sessions;
    if (scope.isLeftOut) next();
    else scope.serve(session, next);
  }
}

/** A request and its response, whose first byte waits until the session is saved. */
export class ServedRequest extends ResponseCommit {
  #isRenewed = false;

  /** Before the first byte: saves what changed, or sends a touch that is due. */
  protected override saveSession(): Promise<void> | undefined {
    const { session, parts } = this;
    session.sendAgainIfRenewed(parts.resolver);
    const { touch } = session;
    if (touch.isRolling && touch.isDue) return this.#renew();
    // A save touches the session as well.
    if (session.needsSave) return session.save();
    void touch.send();
    return undefined;
  }

  /** Saves, and then touches the session if its token is still the presented one. */
  async #renew(): Promise<void> {
    if (this.session.needsSave) await this.session.save();
    if (this.#tokenToSend || this.isSessionDeleted) return;
    // Not `forwarded`: a session that another request rotated has another token, which the client already got.
    this.#isRenewed = (await this.session.touch.send()) === 'touched';
  }

  /**
   * The token of a session that was created or rotated here, once it is stored; also when a later save failed, because
   * no other token opens the session. Or the presented token again, to renew a cookie that has a lifetime.
   */
  get #tokenToSend(): SessionToken | undefined {
    const { existing, presented } = this.session;
    return existing?.tokenToSend ?? (this.#isRenewed ? presented : undefined);
  }

  /** With the headers: sends the token, and tells caches what the response depends on. */
  protected override addHeaders(): void {
    const token = this.#tokenToSend;
    try {
      const resolved: unknown = this.#sendToken(token);
      // The compiler lets the method of a resolver be `async`.
      if (resolved instanceof Promise) resolved.catch(reportResolver);
    } catch (error) {
      // The session is stored by now, and an exception in the middle of sending the response could end the process.
      reportResolver(error);
    }
    this.parts.devices?.addHeaders(this);
    // A cache that kept the response would give the session to others, or end it, once more.
    if (token || this.isSessionDeleted || this.hasHeaderActions) forbidStoring(this.response);
    else if (this.session.isUsed) forbidSharing(this.response);
  }

  /** Returns the resolver's result, which should be undefined. */
  #sendToken(token: SessionToken | undefined): unknown {
    const { request, response, session } = this;
    const { resolver, extension } = this.parts;
    const { foreign } = session;
    // A cookie that is sent again depends on the presented one, even when the session was not used.
    if (session.isUsed || token) for (const header of resolver.headers) appendVary(response, header);
    if (token && extension.withholds?.(request)) return undefined;
    // Not where the token of this library could not be sent: the client would have none.
    if (foreign && (token || this.isSessionDeleted || !foreign.wasFound)) {
      foreign.session.expire(response);
      forbidStoring(response);
    }
    if (token) return resolver.send(request, response, token, session.client);
    return this.isSessionDeleted ? resolver.expire(request, response, session.client) : undefined;
  }
}

function reportResolver(error: unknown): void {
  logger.error('The SessionIdResolver failed, so a response is sent without its headers', shownStack(error));
}
