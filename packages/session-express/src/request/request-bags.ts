import type { IncomingMessage } from 'node:http';
import {
  assignedAt,
  cookieLifetimeOf,
  type RequestSession,
  requestSessionOf,
  TrackedSession,
} from '@nest-session/core/internal';
import {
  type BagSettings,
  callSafely,
  propertiesOf,
  reportUntold,
  RequestBag,
  type SessionBag,
} from '../bag/session-bag.js';
import { type PassportKeys, watchPassport } from '../principal/passport-logins.js';
import type { Session, SessionRepository } from '@nest-session/core';
import { SessionCookie } from '../bag/session-cookie.js';

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

type Reply<T> = (error?: unknown, result?: T) => void;

/** The `req.sessionStore`. It gives access to other sessions by the id that `req.session.id` returns. */
export class SessionStore {
  /** `findRepository` is called at each use, because the module of the store may be constructed later. */
  constructor(
    private readonly settings: Pick<BagSettings, 'lifetimeOf' | 'describeCookie'>,
    private readonly findRepository: () => SessionRepository,
    private readonly end: (id: string) => Promise<unknown>,
  ) {}

  /** Calls back with the properties of a live session and its cookie, or with null. */
  get(id: string, callback: Reply<object | null>): void {
    answer(callback, async () => {
      const session = await this.findRepository().findById(id);
      return session && { ...Object.fromEntries(propertiesOf(session)), cookie: this.#cookieOf(session) };
    });
  }

  load(id: string, callback: Reply<object | null>): void {
    this.get(id, callback);
  }

  destroy(id: string, callback?: Reply<void>): void {
    answer(callback, async () => void (await this.end(id)));
  }

  regenerate(request: { readonly session: SessionBag }, callback: Reply<void>): void {
    request.session.regenerate(callback);
  }

  /** The cookie as it was sent at the last access that the store recorded. */
  #cookieOf(session: Session): SessionCookie {
    const lifetime = this.settings.lifetimeOf(cookieLifetimeOf(TrackedSession.of(session)));
    const maxAge = lifetime === 0 ? null : lifetime * 1000;
    return new SessionCookie(maxAge, this.settings.describeCookie(), undefined, session.lastAccessedTime);
  }
}

const LISTS = 'Sessions.ofPrincipal(name) lists the sessions of a user, and Sessions.endAll(name) ends them';

/** What to call instead of a method of express-session that is not there. */
const INSTEAD: Readonly<Record<string, string>> = {
  all: LISTS,
  length: LISTS,
  clear: 'Sessions.endEverySession() ends all sessions',
  set:
    'it would lose what other requests save. SessionRepository.findById(id) loads a session, and its save() stores ' +
    'changes',
  touch: 'every request renews its session, and SessionRepository.touch() another one',
};

for (const [name, instead] of Object.entries(INSTEAD)) {
  const value = (...args: unknown[]) => {
    const error = new Error(`req.sessionStore.${name}() is not there: ${instead}`);
    const callback = args.at(-1);
    if (typeof callback !== 'function') throw error;
    answer(callback as Reply<never>, () => Promise.reject(error));
  };
  Object.defineProperty(SessionStore.prototype, name, { value });
}

function answer<T>(callback: Reply<T> | undefined, action: () => Promise<T>): void {
  const call = (...args: Parameters<Reply<T>>) => callSafely(() => callback?.(...args), reportUntold);
  action().then(
    (result) => call(undefined, result),
    (error: unknown) => call(error),
  );
}
