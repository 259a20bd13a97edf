import type { SessionRepository } from '@nest-session/core';
import { propertiesOf } from '../bag/bag-values.js';
import type { SessionBag } from '../bag/session-bag.js';

type Reply<T> = (error?: unknown, result?: T) => void;

/** `req.sessionStore`: other sessions, by the id that `req.session.id` shows. */
export class SessionStore {
  /** @param findRepository called at each use, because the module of the store may be constructed later */
  constructor(private readonly findRepository: () => SessionRepository) {}

  /** Calls back with the properties of a live session, or with null. */
  get(id: string, callback: Reply<object | null>): void {
    answer(callback, async () => {
      const session = await this.findRepository().findById(id);
      return session && Object.fromEntries(propertiesOf(session));
    });
  }

  /** The same as `get()`. */
  load(id: string, callback: Reply<object | null>): void {
    this.get(id, callback);
  }

  /** Ends a session for every instance. */
  destroy(id: string, callback?: Reply<void>): void {
    answer(callback, async () => void (await this.findRepository().deleteById(id)));
  }

  /** The same as `req.session.regenerate()`. */
  regenerate(request: { readonly session: SessionBag }, callback: Reply<void>): void {
    request.session.regenerate(callback);
  }
}

function answer<T>(callback: Reply<T> | undefined, action: () => Promise<T>): void {
  action().then(
    (result) => callback?.(undefined, result),
    (error: unknown) => callback?.(error),
  );
}
