import type { Session } from '@nest-session/core';
import { type SaveOutcome, SHOWN_SESSION } from '@nest-session/core/internal';
import type { BagValues } from './bag-values.js';
import type { SessionCookie } from './session-cookie.js';

/** Called with the error, or with nothing. */
export type Callback = (error?: unknown) => void;

/** The requests that a session makes of the request that it belongs to. */
export interface BagOwner {
  /** Replaces the session by one with a new id and with these attributes of it alone. */
  regenerate(kept: readonly string[]): void;
  destroy(): Promise<void>;
  reload(): Promise<void>;
  /** The same update of an attribute, which throws where it would make somebody else the principal. */
  keepPrincipal(name: string, update: Update): Update;
}

/** Makes the next value of an attribute. */
export type Update = (current: unknown) => unknown;

/** Where a bag keeps what is not a property. */
export const CONTENT = Symbol('session bag');

/** What is behind a bag. */
export interface BagContent {
  readonly values: BagValues;
  readonly owner: BagOwner;
}

/**
 * The methods of `req.session`. Every other property is an attribute of the session; `property-bag.ts` sees to that. A
 * method that takes a callback returns a promise when it gets none.
 */
export class SessionBag {
  declare readonly [CONTENT]: BagContent;

  constructor(content: BagContent) {
    Object.defineProperty(this, CONTENT, { value: content });
  }

  /** For what takes a session, such as `Sessions.endAll()`. */
  get [SHOWN_SESSION](): Session {
    return this[CONTENT].values.session;
  }

  /** The session id, which is safe to log. Not what the cookie holds. */
  get id(): string {
    return this[CONTENT].values.id;
  }

  /** The lifetime of the cookie, which is also the idle timeout. */
  get cookie(): SessionCookie {
    return this[CONTENT].values.cookie;
  }

  /**
   * Gives the client a new session: without attributes, under a new id. `req.session` is another object from then on.
   * Takes effect at the save. @param callback or the names of attributes to keep, as @fastify/session has it
   */
  regenerate(callback?: Callback | readonly string[]): unknown {
    const kept = Array.isArray(callback) ? (callback as string[]) : [];
    return answer(this, callback, () => this[CONTENT].owner.regenerate(kept));
  }

  /** Ends the session now, for every instance. `req.session` is undefined from then on. */
  destroy(callback?: Callback): unknown {
    return answer(this, callback, () => this[CONTENT].owner.destroy());
  }

  /** Loads the session again; changes that are not saved are lost. `req.session` is another object from then on. */
  reload(callback?: Callback): unknown {
    return answer(this, callback, () => this[CONTENT].owner.reload());
  }

  /** Saves the changes now instead of before the response. */
  save(callback: Callback): unknown {
    const { values } = this[CONTENT];
    return answer(this, callback, (): Promise<SaveOutcome> | SaveOutcome =>
      values.isLeft ? 'gone' : values.session.save(),
    );
  }

  /** Does what every access does anyway. */
  touch(): this {
    return this.resetMaxAge();
  }

  /** Sets `cookie.maxAge` to `cookie.originalMaxAge` again. */
  resetMaxAge(): this {
    this.cookie.reset();
    return this;
  }

  /** The value of an attribute, as @fastify/session has it. */
  get(name: string): unknown {
    return this[CONTENT].values.get(name);
  }

  /** Sets an attribute, as @fastify/session has it; undefined and null remove it. */
  set(name: string, value: unknown): void {
    this[CONTENT].values.set(name, value);
  }

  /** Changes an attribute together with other requests. @throws TypeError where it would change whose session it is */
  updateAttribute(name: string, update: Update): Promise<unknown> {
    const { values, owner } = this[CONTENT];
    return values.session.updateAttribute(name, owner.keepPrincipal(name, update));
  }

  /** As `Session` shows itself: no values. */
  [Symbol.for('nodejs.util.inspect.custom')](): object {
    return { id: this.id, attributeNames: this[CONTENT].values.names };
  }
}

/** The members of `Session` that a bag has besides its own. */
const OF_SESSION = [
  'isNew',
  'isGone',
  'creationTime',
  'lastAccessedTime',
  'attributeNames',
  'maxInactiveInterval',
  'absoluteTimeout',
  'principalName',
  'authenticatedAt',
  'getAttribute',
  'getRequiredAttribute',
  'getAttributeOrDefault',
  'setAttribute',
  'removeAttribute',
  'changeSessionId',
  'invalidate',
  'signIn',
  'signOut',
] as const satisfies readonly (keyof Session)[];

for (const name of OF_SESSION) {
  Object.defineProperty(SessionBag.prototype, name, {
    configurable: true,
    get(this: SessionBag) {
      const { session } = this[CONTENT].values;
      const member: unknown = session[name];
      return typeof member === 'function' ? (member.bind(session) as unknown) : member;
    },
  });
}

// What a request puts there would be a property of every session.
Object.freeze(SessionBag.prototype);

/** Runs an action, and tells the callback, or the promise that it returns. */
function answer<T>(bag: SessionBag, callback: unknown, action: () => T | Promise<T>): SessionBag | Promise<T> {
  const result = new Promise<T>((resolve) => resolve(action()));
  if (typeof callback !== 'function') return result;
  result.then(
    () => callback() as unknown,
    (error: unknown) => callback(error) as unknown,
  );
  return bag;
}
