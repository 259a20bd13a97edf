import type { IncomingMessage, ServerResponse } from 'node:http';
import { forbidSharing, forbidStoring } from '../resolvers/response-headers.js';
import { serveWithoutClient } from './left-client.js';
import type { FoundSession } from './request-session.js';
import type { RequestSessions } from './request-sessions.js';
import { ResponseCommit } from './response-commit.js';
import { isDestroyed } from './response-hold.js';
import { sessionProperty } from './session-property.js';
import { isUpgrade } from './request-session.loader.js';

/** Serves requests, as the filter of Spring Session does: what each goes through stands in this file, in its order. */
export class RequestServer {
  /** Undefined until the module of the store is constructed. */
  #store: Pick<RequestSessions, 'loader' | 'parts' | 'exclusion' | 'endpoints'> | undefined;
  #touchesAtOnce = false;

  constructor(private readonly sessions: RequestSessions) {}

  open(touchesAtOnce: boolean): void {
    const { loader, parts, exclusion, endpoints } = this.sessions;
    this.#store = { loader, parts, exclusion, endpoints };
    this.#touchesAtOnce = touchesAtOnce;
  }

  /** Finds the tokens, loads the session that they open, and passes the request on. */
  readonly serve = (request: IncomingMessage, response: ServerResponse, next: () => void): void => {
    if (!this.#store) return next();
    const { loader, parts, exclusion, endpoints } = this.#store;
    // A request that is routed again keeps its session.
    if (ResponseCommit.of(request)?.parts === parts) return next();
    // First, because a 404 would end the binding of a browser.
    if (endpoints?.serves(request, response)) return;
    if (parts.extension.serves?.(request, response)) return;
    if (exclusion?.(request)) return next();
    const enter = (found?: FoundSession) => this.#enter(new ServedRequest(request, response, parts, found), next);
    // A platform may get upgrades as well, such as from @fastify/websocket. CORS does not hold for what opens them.
    const loading = isUpgrade(request) && !this.sessions.allowsOriginOf(request) ? undefined : loader.load(request);
    if (!loading) return enter();
    const { socket } = request;
    const wasReadable = socket.readable;
    void loading.then((found) => {
      const isThere = socket.readable && !request.aborted && !isDestroyed(response);
      if (isThere && found.withheld && parts.devices?.sendsPage(request, response)) return;
      if (isThere) enter(found);
      else serveWithoutClient(request, response, wasReadable, () => enter(found));
    });
  };

  #enter({ request, session, parts }: ServedRequest, next: () => void): void {
    // A session with five seconds left must outlive a handler of ten.
    if (this.#touchesAtOnce) session.touch?.sendEarly();
    const { properties } = parts.extension;
    if (properties) Object.defineProperties(request, properties);
    else Object.defineProperty(request, 'session', sessionProperty);
    const { scope } = this.sessions;
    if (scope.isLeftOut) next();
    else scope.serve(session, next);
  }
}

export class ServedRequest extends ResponseCommit {
  protected override saveSession(): Promise<void> | undefined {
    const { session, parts } = this;
    session.sendAgainIfRenewed(parts.resolver);
    const { touch } = session;
    if (touch?.isRolling && touch.isDue) return session.renew();
    // A save touches the session as well.
    if (session.needsSave) return session.save();
    void touch?.send();
    return undefined;
  }

  protected override addHeaders(): void {
    const { session, response, parts } = this;
    const { tokenToSend, isUsed } = session;
    const isDeleted = session.hasEnded;
    this.sendToken(tokenToSend, isDeleted);
    parts.devices?.addHeaders(this);
    // A cache that kept the response would give the session to others, or end it, once more.
    if (tokenToSend || isDeleted) forbidStoring(response);
    else if (isUsed) forbidSharing(response);
  }
}
