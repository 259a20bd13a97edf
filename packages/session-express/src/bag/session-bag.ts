import type { ReadonlySession, Session, Session as CoreSession } from '@nest-session/core';
import {
  isIdentityAttribute,
  SafePromise,
  type SaveOutcome,
  SHOWN_SESSION,
  type TrackedSession,
} from '@nest-session/core/internal';
import { freezeFunction, freezeShared, SessionCookie } from './session-cookie.js';
import { warnOnce } from '../express-session.logger.js';

// Attributes whose names begin with it belong to the library and do not appear as properties.
const RESERVED = 'nest-session.';

// Attributes of a session until the request replaces or ends it. From then on a copy, whose changes have no effect.
export class BagValues {
  #left: { readonly id: string; readonly values: Map<string, unknown> } | undefined;

  constructor(
    readonly session: TrackedSession,
    readonly cookie: SessionCookie,
  ) {}

  get id(): string {
    return this.#left?.id ?? this.session.id;
  }

  get isLeft(): boolean {
    return this.#left !== undefined;
  }

  get names(): string[] {
    return this.#left ? [...this.#left.values.keys()] : propertyNamesOf(this.session);
  }

  get(name: string): unknown {
    if (!isOwn(name)) return undefined;
    return this.#left ? this.#left.values.get(name) : this.session.getAttribute(name);
  }

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  /** @throws TypeError for a name that belongs to the library */
  set(name: string, value: unknown): void {
    if (!isOwn(name))
      throw new TypeError(`The attribute ${JSON.stringify(name)} belongs to @nest-session: use another name`);
    if (!this.#left) this.session.assignAttribute(name, value);
    else if (value === undefined || value === null) this.#left.values.delete(name);
    else this.#left.values.set(name, value);
  }

  remove(name: string): void {
    // Not by the value, which may be one that cannot be read.
    if (this.names.includes(name)) this.set(name, undefined);
  }

  /** Copies the current values, but for those that cannot be read: nobody may need them any more. Never throws. */
  copy(): Map<string, unknown> {
    if (this.#left) return new Map(this.#left.values);
    const values = this.names.map((name) => [name, this.session.peekAttribute(name)] as const);
    return new Map(values.filter(([, value]) => value !== undefined));
  }

  leave(id: string, values: Map<string, unknown>): void {
    this.#left ??= { id, values };
    this.cookie.detach();
  }
}

export function propertiesOf(session: ReadonlySession): Map<string, unknown> {
  return new Map(propertyNamesOf(session).map((name) => [name, session.getAttribute(name)]));
}

function propertyNamesOf(session: ReadonlySession): string[] {
  return session.attributeNames.filter(isOwn);
}

/** Whether the application may use a name: a client may have chosen it. */
export function isOwn(name: string): boolean {
  return !name.startsWith(RESERVED) && !isIdentityAttribute(name);
}

/** The members of a property bag that express-session does not have. You cannot assign to them. */
export type SessionMembers = Readonly<Omit<CoreSession, 'id' | 'save'>>;

// `req.session` has the types of @types/express-session, with the `SessionData` of the application.
declare module 'express-session' {
  interface Session extends SessionMembers {
    /** Without a callback, resolves when the session was replaced. It takes effect at the save. */
    regenerate(): Promise<void>;
    /** Without a callback, resolves when the session has ended. */
    destroy(): Promise<void>;
    /** Without a callback, resolves when the session was loaded again. */
    reload(): Promise<void>;
    /** Without a callback, resolves when the changes are saved. */
    save(): Promise<SaveOutcome>;
  }
}

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

export type Update = (current: unknown) => unknown;

/** The key under which a bag keeps its content, apart from its properties. */
export const CONTENT = Symbol('session bag');

interface BagContent {
  readonly values: BagValues;
  readonly owner: BagOwner;
}

/**
 * The methods of `req.session`. Every other property is an attribute of the session (see `propertyBag()`). A method
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

  get cookie(): SessionCookie {
    return this[CONTENT].values.cookie;
  }

  /** `first`: the callback or, as in @fastify/session, the names of attributes to keep. */
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

  resetMaxAge(): this {
    this.cookie.reset();
    return this;
  }

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

export function propertyBag(content: BagContent): SessionBag {
  return new Proxy(new SessionBag(content), HANDLER);
}

/** Shared by all bags, because V8 cannot optimize proxies that each have their own. */
const HANDLER: ProxyHandler<SessionBag> = {
  get(bag, name) {
    if (isAttribute(bag, name)) return valuesOf(bag).get(name);
    return Reflect.get(bag, name);
  },

  has: (bag, name) => (isAttribute(bag, name) ? valuesOf(bag).has(name) : Reflect.has(bag, name)),

  set(bag, name, value) {
    if (isAttribute(bag, name)) valuesOf(bag).set(name, value);
    else setMember(bag, name, value);
    return true;
  },

  deleteProperty(bag, name) {
    if (isAttribute(bag, name)) valuesOf(bag).remove(name);
    // This restores a method that the application had replaced.
    else Reflect.deleteProperty(bag, name);
    return true;
  },

  defineProperty(bag, name, descriptor) {
    // A store cannot keep accessors.
    if (!('value' in descriptor)) return false;
    return HANDLER.set!(bag, name, descriptor.value, bag);
  },

  ownKeys: (bag) => [...COOKIE, ...valuesOf(bag).names.filter((name) => isAttribute(bag, name)), CONTENT],

  getOwnPropertyDescriptor(bag, name) {
    if (name === 'cookie') return own(bag.cookie);
    if (!isAttribute(bag, name)) return Reflect.getOwnPropertyDescriptor(bag, name);
    const value = valuesOf(bag).get(name);
    return value === undefined ? undefined : own(value);
  },
};

const COOKIE = ['cookie'];

/** What to write instead of an assignment to a member that is, or looks like, a plain property in express-session. */
const INSTEAD: ReadonlyMap<string | symbol, string> = new Map([
  ['principalName', 'call req.session.signIn(name) or signOut()'],
  ['maxInactiveInterval', 'set req.session.cookie.maxAge, or the timeout of the session in SessionContext'],
  ['absoluteTimeout', 'set absoluteTimeout of the session in SessionContext'],
]);

function valuesOf(bag: SessionBag) {
  return bag[CONTENT].values;
}

function isAttribute(bag: SessionBag, name: string | symbol): name is string {
  return typeof name === 'string' && !(name in bag);
}

function own(value: unknown): PropertyDescriptor {
  return { value, writable: true, enumerable: true, configurable: true };
}

function setMember(bag: SessionBag, name: string | symbol, value: unknown): void {
  const instead = INSTEAD.get(name);
  // These names cannot be attributes either, because `Object.assign(req.session, body)` lets the client choose names.
  if (instead !== undefined) throw new TypeError(`req.session.${String(name)} cannot be assigned: ${instead}`);
  if (name === 'cookie') {
    setCookie(bag, value);
  } else if (typeof name === 'symbol' || typeof value === 'function') {
    // Not enumerable, because a method is not data.
    Object.defineProperty(bag, name, { value, writable: true, configurable: true });
  } else {
    throw new TypeError(
      `req.session.${name} is a member of the session: store the value under another name, or use ` +
        `setAttribute(${JSON.stringify(name)}, value)`,
    );
  }
}

/** At a login, Passport copies the properties of the old session to the new one, including its cookie. */
function setCookie({ cookie }: SessionBag, other: unknown): void {
  if (other instanceof SessionCookie) {
    if (other.originalMaxAge !== cookie.originalMaxAge) cookie.maxAge = other.originalMaxAge;
  } else if (typeof other === 'object' && other !== null) {
    // Without its lifetime: it may be the body of a request, and a client must not choose that.
    warnOnce(NO_COOKIE);
  } else {
    throw new TypeError(`${NO_COOKIE}. To end the session, call destroy()`);
  }
}

const NO_COOKIE =
  'Only the cookie of another session can be assigned to req.session.cookie. An object changes nothing: set ' +
  'req.session.cookie.maxAge to change the lifetime';
