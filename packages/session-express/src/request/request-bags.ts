import type { IncomingMessage } from 'node:http';
import { assignedAt, type RequestSession, requestSessionOf } from '@nest-session/core/internal';
import { type BagSettings, RequestBag, type SessionBag } from '../bag/session-bag.js';
import { type PassportKeys, watchPassport } from '../principal/passport-logins.js';

/** The property bags of all requests and messages of an application. It creates each at its first use. */
export class RequestBags {
  readonly #bags = new WeakMap<RequestSession, RequestBag>();
  readonly #refused = new WeakSet<RequestSession>();

  /** @param passportKeys unset: no user of Passport is a principal */
  constructor(
    private readonly settings: BagSettings,
    private readonly passportKeys?: PassportKeys,
  ) {}

  /** The bag of a Node.js request; undefined if it has no session. @throws the error of a failed load */
  of(request: IncomingMessage): RequestBag | undefined {
    const session = requestSessionOf(request);
    if (session && this.passportKeys) watchPassport(request, this.passportKeys);
    return session && this.showing(session);
  }

  /**
   * Before the response. Resolves when the callbacks were called that wait for the session: they may change it, and
   * respond. Undefined when there are none, and then `delete req.session`, which removes the property, means the same
   * as an assignment of undefined.
   * @throws the error of a failed load, once, when that should have ended the session; SessionGoneError, once, of a
   *   `save()` or `destroy()` that nobody has awaited
   */
  beforeResponse(session: RequestSession): Promise<unknown> | undefined {
    const used = this.#bags.get(session);
    const left = used?.callbacksLeft;
    if (left) return left;
    used?.tell();
    if (Object.hasOwn(session.request, 'session') || this.#refused.has(session)) return undefined;
    if (session.isUnavailable) {
      if (this.settings.unset === 'keep') return undefined;
      // The response to the error is not refused as well.
      this.#refused.add(session);
    }
    const bag = this.showing(session);
    bag?.unset(undefined);
    return undefined;
  }

  showing(session: RequestSession): RequestBag | undefined {
    const known = this.#bags.get(session);
    // An access log that reads the session after the response must not fail because the store failed.
    if (known || session.isLeftWithout) return known;
    const bag = new RequestBag(session, this.settings);
    this.#bags.set(session, bag);
    return bag;
  }
}

/** Not enumerable, so copying or printing a request does not load its session. */
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
