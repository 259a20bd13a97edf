import type { Session } from '@nest-session/core';
import { SafePromise, type SaveOutcome, SHOWN_SESSION } from '@nest-session/core/internal';
import type { BagValues } from './bag-values.js';
import { freezeFunction, freezeShared } from './freeze-shared.js';
import type { SessionCookie } from './session-cookie.js';

/** Called with the error, or without an argument. */
export type Callback = (error?: unknown) => void;

/** The request or message that a bag belongs to. The bag asks it to replace, end or reload its session. */
export interface BagOwner {
  /** Replaces the session with one that has a new id and only these attributes. */
  regenerate(kept: readonly string[]): void;
  destroy(isTold: IsTold): Promise<void>;
  /** Saves the session of the bag now. */
  save(isTold: IsTold): Promise<SaveOutcome>;
  reload(): Promise<void>;
  /** Calls back with the error of a result, or without an argument. */
  callBack(result: Promise<unknown>, callback: Callback): void;
  /** The application reads the id of its session. */
  tellOfId(): void;
  /** Wraps an update of an attribute, so that it throws if it would change the principal. */
  keepPrincipal(name: string, update: Update): Update;
}

/** Whether the application hears of a failure. Otherwise the client must. */
export type IsTold = () => boolean;

/** Returns the next value of an attribute. */
export type Update = (current: unknown) => unknown;

/** The key under which a bag keeps its content, apart from its properties. */
export const CONTENT = Symbol('session bag');

/** The content behind a bag. */
export interface BagContent {
  readonly values: BagValues;
  readonly owner: BagOwner;
}

/**
 * The methods of `req.session`. Every other property is an attribute of the session (see `property-bag.ts`). A method
 * that takes a callback returns a promise if you pass none.
 */
export class SessionBag {
  declare readonly [CONTENT]: BagContent;

  constructor(content: BagContent) {
    Object.defineProperty(this, CONTENT, { value: content });
  }

  /** The session itself, for methods that take a session, such as `Sessions.endAll()`. */
  get [SHOWN_SESSION](): Session {
    return this[CONTENT].values.session;
  }

  /** The session id, which is safe to log. It is not the token in the cookie. */
  get id(): string {
    const { values, owner } = this[CONTENT];
    owner.tellOfId();
    return values.id;
  }

  /** The lifetime of the cookie, which is also the idle timeout. */
  get cookie(): SessionCookie {
    return this[CONTENT].values.cookie;
  }

  /**
   * Gives the client a new session with a new id and without attributes. `req.session` is another object from then on.
   * It takes effect at the save.
   * @param first the callback or, as in @fastify/session, the names of attributes to keep
   * @param second the callback behind such names
   */
  regenerate(first?: Callback | readonly string[], second?: Callback): unknown {
    const [kept, callback] = typeof first === 'function' ? [[], first] : [first ?? [], second];
    return answer(this, callback, () => this[CONTENT].owner.regenerate(kept));
  }

  /** Ends the session now, for every instance. `req.session` is undefined from then on. */
  destroy(callback?: Callback): unknown {
    return answerIfAsked(this, callback, (isTold) => this[CONTENT].owner.destroy(isTold));
  }

  /** Loads the session again and discards unsaved changes. `req.session` is another object from then on. */
  reload(callback?: Callback): unknown {
    return answer(this, callback, () => this[CONTENT].owner.reload());
  }

  /** Saves the changes now instead of before the response. */
  save(callback: Callback): unknown {
    const { values, owner } = this[CONTENT];
    return answerIfAsked(this, callback, (isTold): Promise<SaveOutcome> | SaveOutcome =>
      values.isLeft ? 'gone' : owner.save(isTold),
    );
  }

  /** Does nothing, because every access renews the session anyway. */
  touch(): this {
    return this.resetMaxAge();
  }

  /** Sets `cookie.maxAge` to `cookie.originalMaxAge` again. */
  resetMaxAge(): this {
    this.cookie.reset();
    return this;
  }

  /** Returns the value of an attribute, as in @fastify/session. */
  get(name: string): unknown {
    return this[CONTENT].values.get(name);
  }

  /** Sets an attribute, as in @fastify/session. Undefined and null remove it. */
  set(name: string, value: unknown): void {
    this[CONTENT].values.set(name, value);
  }

  /** Updates an attribute without losing concurrent updates. @throws TypeError if it would change the principal */
  updateAttribute(name: string, update: Update): Promise<unknown> {
    const { values, owner } = this[CONTENT];
    return values.session.updateAttribute(name, owner.keepPrincipal(name, update));
  }

  /** Prints like `Session`, without values. */
  [Symbol.for('nodejs.util.inspect.custom')](): object {
    const { id, names } = this[CONTENT].values;
    return { id, attributeNames: names };
  }
}

/** The members of `Session` that a bag has in addition to its own. */
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
      return typeof member === 'function' ? freezeFunction(member.bind(session) as object) : member;
    },
  });
}

// A property that a request sets on the prototype, or on a method, would appear in every session.
freezeShared(SessionBag.prototype);

/** Runs an action, and reports its result to the callback or, without one, by the returned promise. */
function answer<T>(bag: SessionBag, callback: unknown, action: () => T | Promise<T>): SessionBag | Promise<T> {
  const result = new Promise<T>((resolve) => resolve(action()));
  if (typeof callback !== 'function') return result;
  bag[CONTENT].owner.callBack(result, callback as Callback);
  return bag;
}

/**
 * The same for what express-session lets applications call without a callback, and then forgets: an error of which
 * nobody wants to know causes no `unhandledRejection`, which would end the process. The client learns of it.
 */
function answerIfAsked<T>(
  bag: SessionBag,
  callback: unknown,
  action: (isTold: IsTold) => T | Promise<T>,
): SessionBag | Promise<T> {
  let promise: SafePromise<T> | undefined;
  const isTold = () => typeof callback === 'function' || promise?.isAwaited === true;
  const answered = answer(bag, callback, () => action(isTold));
  if (!(answered instanceof Promise)) return answered;
  promise = SafePromise.of(answered, () => undefined);
  return promise;
}
