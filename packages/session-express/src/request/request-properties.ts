import type { IncomingMessage } from 'node:http';
import { assignedAt } from '@nest-session/core/internal';
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
      set: function assign(this: IncomingMessage, session: unknown) {
        const bag = bags.of(this);
        if (!bag || bag.bag === session) return;
        if (session !== null && session !== undefined) throw new TypeError(`${ASSIGNED} ${assignedAt(assign)}`);
        bag.unset(session);
      },
    },
    sessionID: {
      configurable: true,
      get(this: IncomingMessage): string | undefined {
        const bag = bags.of(this);
        bag?.tellOfId();
        return bag?.id;
      },
      set() {
        throw new TypeError('req.sessionID cannot be assigned: call req.session.regenerate() for a new id');
      },
    },
    sessionStore: { configurable: true, value: sessionStore },
  };
}

const ASSIGNED =
  'req.session cannot be replaced by another object: set its properties, call req.session.regenerate() for a new ' +
  'session, or call req.session.destroy() to end it. If another library assigns its own session, remove ' +
  'ExpressSessionModule, and take the session by @Session() of @nest-session/core. Assigned at';
