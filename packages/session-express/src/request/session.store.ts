import type { Session, SessionRepository } from '@nest-session/core';
import { cookieLifetimeOf, TrackedSession } from '@nest-session/core/internal';
import { type BagSettings, callSafely, propertiesOf, reportUntold, type SessionBag } from '../bag/session-bag.js';
import { SessionCookie } from '../bag/session-cookie.js';

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

  /** Not there, like the next ones: the error says what to call instead. */
  all(callback?: Reply<never>): void {
    refuse('all', LISTS, callback);
  }

  length(callback?: Reply<never>): void {
    refuse('length', LISTS, callback);
  }

  clear(callback?: Reply<never>): void {
    refuse('clear', 'Sessions.endEverySession() ends all sessions', callback);
  }

  set(_id: string, _session: unknown, callback?: Reply<never>): void {
    refuse('set', OVERWRITES, callback);
  }

  touch(_id: string, _session: unknown, callback?: Reply<never>): void {
    refuse('touch', 'every request renews its session, and SessionRepository.touch() another one', callback);
  }

  /** The cookie as it was sent at the last access that the store recorded. */
  #cookieOf(session: Session): SessionCookie {
    const lifetime = this.settings.lifetimeOf(cookieLifetimeOf(TrackedSession.of(session)));
    const maxAge = lifetime === 0 ? null : lifetime * 1000;
    return new SessionCookie(maxAge, this.settings.describeCookie(), undefined, session.lastAccessedTime);
  }
}

const LISTS = 'Sessions.ofPrincipal(name) lists the sessions of a user, and Sessions.endAll(name) ends them';

const OVERWRITES =
  'it would lose what other requests save. SessionRepository.findById(id) loads a session, and its save() stores changes';

/** @throws the error without a callback */
function refuse(method: string, instead: string, callback: Reply<never> | undefined): void {
  const error = new Error(`req.sessionStore.${method}() is not there: ${instead}`);
  if (typeof callback !== 'function') throw error;
  answer(callback, () => Promise.reject(error));
}

function answer<T>(callback: Reply<T> | undefined, action: () => Promise<T>): void {
  const call = (...args: Parameters<Reply<T>>) => callSafely(() => callback?.(...args), reportUntold);
  action().then(
    (result) => call(undefined, result),
    (error: unknown) => call(error),
  );
}
