import type { IncomingMessage } from 'node:http';
import type { SessionBag } from '../bag/session-bag.js';
import type { RequestBags } from './request-bags.js';

/**
 * What express-session gives a request: `session`, `sessionID` and `sessionStore`. Not enumerable, so that copying or
 * printing a request does not use its session.
 */
export function requestProperties(bags: RequestBags, sessionStore: object): PropertyDescriptorMap {
  return {
    session: {
      configurable: true,
      get(this: IncomingMessage): SessionBag | null | undefined {
        return bags.of(this)?.bag;
      },
      set(this: IncomingMessage, session: unknown) {
        const bag = bags.of(this);
        if (bag) bag.bag = session;
      },
    },
    sessionID: {
      configurable: true,
      get(this: IncomingMessage): string | undefined {
        return bags.of(this)?.id;
      },
      set() {
        throw new TypeError('req.sessionID cannot be assigned: call req.session.regenerate() for a new id');
      },
    },
    sessionStore: { configurable: true, value: sessionStore },
  };
}
