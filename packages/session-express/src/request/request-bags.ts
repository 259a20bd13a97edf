import type { IncomingMessage } from 'node:http';
import { holderOf, type SessionHolder } from '@nest-session/core/internal';
import type { BagSettings } from './bag-settings.js';
import { RequestBag } from './request-bag.js';

/** The property bags of all requests and messages of an application. It creates each at its first use. */
export class RequestBags {
  readonly #bags = new WeakMap<SessionHolder, RequestBag>();

  constructor(private readonly settings: BagSettings) {}

  /** The bag of a Node.js request; undefined if it has no session. @throws the error of a failed load */
  of(request: IncomingMessage): RequestBag | undefined {
    const holder = holderOf(request);
    return holder && this.in(holder);
  }

  /** The bag of a request or a message. @throws the error of a failed load */
  in(holder: SessionHolder): RequestBag | undefined {
    const known = this.#bags.get(holder);
    // An access log that reads the session after the response must not fail because the store failed.
    if (known || (holder.session.isUnavailable && holder.commit?.headersSent)) return known;
    const bag = new RequestBag(holder, this.settings);
    this.#bags.set(holder, bag);
    return bag;
  }
}
