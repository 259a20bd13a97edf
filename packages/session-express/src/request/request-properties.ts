import type { IncomingMessage } from 'node:http';
import type { SessionBag } from '../bag/session-bag.js';
import type { RequestBags } from './request-bags.js';

/**
 * The properties that express-session adds to a request: `session`, `sessionID` and `sessionStore`. They are not
 * enumerable, so copying or printing a request does not load its session.
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
