import type { IncomingMessage } from 'node:http';
import { type ReadonlySession, type Session, type SessionClient, SessionGoneError } from '@nest-session/core';
import {
  COOKIE_MAX_AGE_ATTRIBUTE,
  INITIALIZED_ATTRIBUTE,
  type RequestSession,
  SafePromise,
  type SaveOutcome,
  SHOWN_SESSION,
  shownStack,
  TrackedSession,
} from '@nest-session/core/internal';
import { type CookieDescription, freezeFunction, freezeShared, SessionCookie } from './session-cookie.js';
import { logger, warnOnce } from '../express-session.logger.js';
import { isOwn } from '../principal/principal-rule.js';

// Attributes of a session until the request replaces or ends it. From then on a copy, whose changes have no effect.
class BagContent {
  #left: { readonly id: string; readonly values: Map<string, unknown> } | undefined;

  constructor(
    readonly owner: RequestBag,
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

/** The members of a property bag that express-session does not have. You cannot assign to them. */
export type SessionMembers = Readonly<Omit<Session, 'id' | 'save'>>;

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

type Callback = (error?: unknown) => void;

/** Whether the application hears of a failure. Otherwise the client must. */
type IsTold = () => boolean;

/** The key under which a bag keeps its content, apart from its properties. */
const CONTENT = Symbol('session bag');

/**
 * The methods of `req.session`. Every other property is an attribute of the session (see `HANDLER`). A method
 * that takes a callback returns a promise if you pass none.
 */
export class SessionBag {
  declare readonly [CONTENT]: BagContent;

  constructor(content: BagContent) {
    Object.defineProperty(this, CONTENT, { value: content });
  }

  /** The session itself, for methods that take a session, such as `Sessions.endAll()`. */
  get [SHOWN_SESSION](): Session {
    return this[CONTENT].session;
  }

  /** The session id, which is safe to log. It is not the token in the cookie. */
  get id(): string {
    const { owner, id } = this[CONTENT];
    owner.tellOfId();
    return id;
  }

  get cookie(): SessionCookie {
    return this[CONTENT].cookie;
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
    const { isLeft, owner } = this[CONTENT];
    return answerIfAsked<SaveOutcome>(this, callback, (isTold) => (isLeft ? 'gone' : owner.save(isTold)));
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
    return this[CONTENT].get(name);
  }

  /** Sets an attribute, as in @fastify/session. Undefined and null remove it. */
  set(name: string, value: unknown): void {
    this[CONTENT].set(name, value);
  }

  /** Updates an attribute without losing concurrent updates. @throws TypeError if it would change the principal */
  updateAttribute(name: string, update: (current: unknown) => unknown): Promise<unknown> {
    return this[CONTENT].session.updateAttribute(name, update);
  }

  /** Prints like `Session`, without values. */
  [Symbol.for('nodejs.util.inspect.custom')](): object {
    const { id, names } = this[CONTENT];
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
      const { session } = this[CONTENT];
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

/** Shared by all bags, because V8 cannot optimize proxies that each have their own. */
const HANDLER: ProxyHandler<SessionBag> = {
  get(bag, name) {
    if (isAttribute(bag, name)) return bag[CONTENT].get(name);
    return Reflect.get(bag, name);
  },

  has: (bag, name) => (isAttribute(bag, name) ? bag[CONTENT].has(name) : Reflect.has(bag, name)),

  set(bag, name, value) {
    if (isAttribute(bag, name)) bag[CONTENT].set(name, value);
    else setMember(bag, name, value);
    return true;
  },

  deleteProperty(bag, name) {
    if (isAttribute(bag, name)) bag[CONTENT].remove(name);
    // This restores a method that the application had replaced.
    else Reflect.deleteProperty(bag, name);
    return true;
  },

  defineProperty(bag, name, descriptor) {
    // A store cannot keep accessors.
    if (!('value' in descriptor)) return false;
    return HANDLER.set!(bag, name, descriptor.value, bag);
  },

  ownKeys: (bag) => ['cookie', ...bag[CONTENT].names.filter((name) => isAttribute(bag, name)), CONTENT],

  getOwnPropertyDescriptor(bag, name) {
    if (name === 'cookie') return own(bag.cookie);
    if (!isAttribute(bag, name)) return Reflect.getOwnPropertyDescriptor(bag, name);
    const value = bag[CONTENT].get(name);
    return value === undefined ? undefined : own(value);
  },
};

/** What to write instead of an assignment to a member that is, or looks like, a plain property in express-session. */
const INSTEAD: ReadonlyMap<string | symbol, string> = new Map([
  ['principalName', 'call req.session.signIn(name) or signOut()'],
  ['maxInactiveInterval', 'set req.session.cookie.maxAge, or the timeout of the session in SessionContext'],
  ['absoluteTimeout', 'set absoluteTimeout of the session in SessionContext'],
]);

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

export interface BagSettings {
  /** Whether the session ends when `req.session` is set to null. */
  readonly unset: 'keep' | 'destroy';
  /** Whether a new session is stored even if the application set no property. */
  readonly saveUninitialized: boolean;
  /** Called when the application has read the id of a session: before the response, where there is one. */
  tellOfId(): void;
  /** The idle timeout in seconds of a session whose cookie has no lifetime of its own. -1 means none. */
  timeoutOf(principalName: string | undefined): number;
  /** The lifetime of the cookie of a client in seconds. 0 means until the browser is closed. */
  lifetimeOf(client: SessionClient): number;
  /** The attributes of the cookie in the response to a request or, without one, those that all requests share. */
  describeCookie(request?: IncomingMessage): CookieDescription;
}

/** The `req.session` of one request or message. The application may replace, end or unset it. */
export class RequestBag {
  readonly #session: TrackedSession;
  /** Of those that the application has passed. Its response waits until each was called. */
  #callbacksLeft: Set<Promise<void>> | undefined;
  #bag: SessionBag | null | undefined;
  /** Whether the application has read the id of the session since that was told. */
  #isIdRead = false;
  /** The failure of a save that nobody waited for. */
  #untold: SessionGoneError | undefined;
  /** The lifetime that the cookie of a new session was given, and since when somebody was signed in to it by then. */
  #given: { readonly seconds: number; readonly authenticatedAt: number | undefined } | undefined;

  /** @throws the error of a failed load */
  constructor(
    private readonly request: RequestSession,
    private readonly settings: BagSettings,
  ) {
    this.#session = TrackedSession.of(request.session);
    this.#session.beforeSave(() => this.#complete());
    this.#bag = this.#open();
    this.#initialize();
  }

  /** Undefined after `destroy()`, or the null or undefined that the application assigned. */
  get bag(): SessionBag | null | undefined {
    return this.#bag;
  }

  /** Does what the option `unset` says, once. */
  unset(value: null | undefined): void {
    // The bag may be gone already, after destroy() or an earlier assignment.
    if (this.#bag) this.#unset();
    this.#bag = value;
  }

  get id(): string {
    return this.#session.id;
  }

  /** Replaces the session with one that has a new id and only these attributes. */
  regenerate(kept: readonly string[]): void {
    const session = this.#session;
    const { id } = session;
    const values = this.#copy();
    // Throws where one of them cannot be read, before anything has changed.
    const staying = kept.map((name) => [name, this.#bag?.[CONTENT].get(name)] as const);
    session.startAnew();
    session.maxInactiveInterval = this.settings.timeoutOf(undefined);
    this.#given = undefined;
    this.#leave(id, values);
    this.#bag = this.#open();
    for (const [name, value] of staying) if (value !== undefined) session.setAttribute(name, value);
    this.#initialize();
  }

  async destroy(isTold: IsTold): Promise<void> {
    const values = this.#copy();
    // This is a logout, so end every session that the request presents.
    this.#session.signOut();
    this.#leave(this.#session.id, values);
    this.#bag = undefined;
    await this.save(isTold);
  }

  save(isTold: IsTold): Promise<SaveOutcome> {
    const saving = this.#session.save();
    // First of all that wait for it. Whatever else was not saved is saved again before the response.
    saving.catch((error: unknown) => {
      if (error instanceof SessionGoneError && !isTold()) this.#untold = error;
    });
    return saving;
  }

  /** Before the response. @throws the failure of a save that nobody has heard of, once */
  tell(): void {
    this.#tellOfId();
    this.#tellUntold();
  }

  #tellUntold(): void {
    const error = this.#untold;
    this.#untold = undefined;
    // Unless the save before the response has failed with it.
    if (error && !this.request.hasFailed) throw error;
  }

  async reload(): Promise<void> {
    const values = this.#copy();
    if (!(await this.request.reload())) throw new Error('failed to load session');
    this.#leave(this.#session.id, values);
    this.#bag = this.#open();
  }

  callBack(result: Promise<unknown>, callback: Callback): void {
    const left = (this.#callbacksLeft ??= new Set());
    const fail = (error: unknown) => {
      if (!this.request.response.fail?.(error)) reportUntold(error);
    };
    const call = (...args: Parameters<Callback>) => {
      // First, because the response that it sends would wait for it.
      left.delete(called);
      callSafely(() => callback(...args), fail);
    };
    const called = result.then(
      () => call(),
      (error: unknown) => call(error),
    );
    left.add(called);
  }

  /** Resolves when the callbacks were called that wait for the session; undefined when there are none. */
  get callbacksLeft(): Promise<unknown> | undefined {
    return this.#callbacksLeft?.size ? Promise.all(this.#callbacksLeft) : undefined;
  }

  tellOfId(): void {
    this.#isIdRead = true;
    if (this.request.response.headersSent) this.#tellOfId();
  }

  #tellOfId(): void {
    if (this.#isIdRead) this.settings.tellOfId();
    this.#isIdRead = false;
  }

  #unset(): void {
    this.#leave(this.#session.id, this.#copy());
    if (this.settings.unset === 'destroy') this.#session.signOut();
    else this.#session.discard();
  }

  /** The current values. None after `destroy()` or an assignment, when the application may still have the bag. */
  #copy(): Map<string, unknown> {
    return this.#bag?.[CONTENT].copy() ?? new Map<string, unknown>();
  }

  /** The lifetime of the cookie of a new session, in seconds. Setting it alone does not store the session. */
  get #maxAge(): number | undefined {
    const { authenticatedAt } = this.#session;
    // A sign-in since then has decided it anew.
    const isOld = authenticatedAt !== undefined && authenticatedAt !== this.#given?.authenticatedAt;
    return isOld ? undefined : this.#given?.seconds;
  }

  /** Seconds, of the cookie that the client has or would get. 0 means until the browser is closed. */
  get #lifetime(): number {
    return this.settings.lifetimeOf(this.request.client);
  }

  #open(): SessionBag {
    const lifetime = this.#maxAge ?? this.#lifetime;
    const maxAge = lifetime === 0 ? null : lifetime * 1000;
    const change = (next: number | null) => this.#changeLifetime(next);
    const cookie = new SessionCookie(maxAge, this.settings.describeCookie(this.request.request), change);
    return new Proxy(new SessionBag(new BagContent(this, this.#session, cookie)), HANDLER);
  }

  #leave(id: string, values: Map<string, unknown>): void {
    this.#bag?.[CONTENT].leave(id, values);
  }

  #changeLifetime(maxAge: number | null): void {
    const session = this.#session;
    const seconds = maxAge === null ? 0 : Math.ceil(maxAge / 1000);
    if (maxAge !== null && seconds <= 0) return void (session.maxInactiveInterval = 0);
    session.maxInactiveInterval = maxAge === null ? this.settings.timeoutOf(session.principalName) : seconds;
    if (session.isNew) return void (this.#given = { seconds, authenticatedAt: session.authenticatedAt });
    // Browsers shorten a long one.
    if ([this.#lifetime, session.peekAttribute(COOKIE_MAX_AGE_ATTRIBUTE)].includes(seconds)) return;
    session.setOwnAttribute(COOKIE_MAX_AGE_ATTRIBUTE, seconds);
    this.request.sendAgain();
  }

  /** Called before a save. Stores the lifetime of the cookie. */
  #complete(): void {
    this.#tellUntold();
    const session = this.#session;
    if (!this.#bag || session.attributeNames.length === 0) return;
    const maxAge = this.#maxAge;
    if (maxAge !== undefined && maxAge !== this.#lifetime) session.setOwnAttribute(COOKIE_MAX_AGE_ATTRIBUTE, maxAge);
    this.#given = undefined;
  }

  #initialize(): void {
    const { isUnavailable, response } = this.request;
    if (!this.settings.saveUninitialized || !this.#session.isNew || this.#session.isGone) return;
    if (!isUnavailable && !response.headersSent) {
      this.#session.setOwnAttribute(INITIALIZED_ATTRIBUTE, true);
    }
  }
}

/** Calls a callback. What it throws, now or by a promise, would be an `unhandledRejection`, which ends the process. */
export function callSafely(callback: () => unknown, fail: (error: unknown) => void): void {
  try {
    const returned = callback();
    if (returned instanceof Promise) returned.catch(fail);
  } catch (error) {
    fail(error);
  }
}

/** Logs the error of a callback that decides no response. */
export function reportUntold(error: unknown): void {
  logger.error('A callback of req.session threw an error that no response tells any more', shownStack(error));
}
