import type { IncomingMessage } from 'node:http';
import { type RequestSession, requestSessionOf } from '@nest-session/core/internal';
import type { BagSettings } from './bag-settings.js';
import { RequestBag } from './request-bag.js';

/** The property bags of all requests and messages of an application, each made when it is first asked for. */
export class RequestBags {
  readonly #bags = new WeakMap<RequestSession, RequestBag>();

  constructor(private readonly settings: BagSettings) {}

  /** That of a request of Node.js; undefined when it has no session. @throws the error of a load that failed */
  of(request: IncomingMessage): RequestBag | undefined {
    const session = requestSessionOf(request);
    return session && this.showing(session);
  }

  /** The bag that shows the session of a request or message. @throws the error of a load that failed */
  showing(session: RequestSession): RequestBag | undefined {
    const known = this.#bags.get(session);
    // An access log that reads the session after the response must not fail because the store did.
    if (known || session.isLeftWithout) return known;
    const bag = new RequestBag(session, this.settings);
    this.#bags.set(session, bag);
    return bag;
  }
}
