import type { IncomingMessage } from 'node:http';
import { SessionExchange } from '@nest-session/core/transport';
import type { SessionBag } from '../bag/session-bag.js';
import type { BagSettings } from './bag-settings.js';
import { RequestBag } from './request-bag.js';

/**
 * What express-session gives a request: `session`, `sessionID` and `sessionStore`. Not enumerable, so that copying or
 * printing a request does not use its session.
 */
export function requestProperties(settings: BagSettings, sessionStore: object): PropertyDescriptorMap {
  const bags = new WeakMap<IncomingMessage, RequestBag>();

  function bagOf(request: IncomingMessage): RequestBag | undefined {
    const known = bags.get(request);
    const exchange = known ? undefined : SessionExchange.of(request);
    // An access log that reads the session after the response must not fail because the store did.
    if (!exchange || (exchange.session.isUnavailable && exchange.commit.headersSent)) return known;
    const bag = new RequestBag(exchange, settings);
    bags.set(request, bag);
    return bag;
  }

  return {
    session: {
      configurable: true,
      get(this: IncomingMessage): SessionBag | null | undefined {
        return bagOf(this)?.bag;
      },
      set(this: IncomingMessage, session: unknown) {
        const bag = bagOf(this);
        if (bag) bag.bag = session;
      },
    },
    sessionID: {
      configurable: true,
      get(this: IncomingMessage): string | undefined {
        return bagOf(this)?.id;
      },
      set() {
        throw new TypeError('req.sessionID cannot be assigned: call req.session.regenerate() for a new id');
      },
    },
    sessionStore: { configurable: true, value: sessionStore },
  };
}
