import type { IncomingMessage } from 'node:http';
import { type SessionClient, SessionGoneError } from '@nest-session/core';
import {
  COOKIE_MAX_AGE_ATTRIBUTE,
  INITIALIZED_ATTRIBUTE,
  type RequestSession,
  type SaveOutcome,
  shownStack,
  TrackedSession,
} from '@nest-session/core/internal';
import { type CookieDescription, SessionCookie } from '../bag/session-cookie.js';
import type { PrincipalRule } from '../principal/principal-rule.js';
import { type NoPrincipalReport, PrincipalRecorder } from '../principal/session-principal.js';
import {
  type BagOwner,
  BagValues,
  type Callback,
  CONTENT,
  type IsTold,
  propertyBag,
  type SessionBag,
  type Update,
} from '../bag/session-bag.js';
import { logger } from '../express-session.logger.js';

export interface BagSettings {
  /** Whether the session ends when `req.session` is set to null. */
  readonly unset: 'keep' | 'destroy';
  /** Whether a new session is stored even if the application set no property. */
  readonly saveUninitialized: boolean;
  /** Determines the principal of a session. Undefined: the application does. */
  readonly principal: PrincipalRule | undefined;
  readonly reportNoPrincipal: NoPrincipalReport;
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
export class RequestBag implements BagOwner {
  readonly #session: TrackedSession;
  readonly #principal: PrincipalRecorder;
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
    const { principal, reportNoPrincipal } = settings;
    this.#principal = new PrincipalRecorder(this.#session, request.request, principal, reportNoPrincipal);
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

  regenerate(kept: readonly string[]): void {
    const session = this.#session;
    const { id } = session;
    const values = this.#copy();
    // Throws where one of them cannot be read, before anything has changed.
    const staying = kept.map((name) => [name, this.#bag?.[CONTENT].values.get(name)] as const);
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

  keepPrincipal(name: string, update: Update): Update {
    return this.#principal.keeping(name, update, this.#bag ?? {});
  }

  #unset(): void {
    this.#leave(this.#session.id, this.#copy());
    if (this.settings.unset === 'destroy') this.#session.signOut();
    else this.#session.discard();
  }

  /** The current values. None after `destroy()` or an assignment, when the application may still have the bag. */
  #copy(): Map<string, unknown> {
    return this.#bag?.[CONTENT].values.copy() ?? new Map<string, unknown>();
  }

  /** The lifetime of the cookie of a new session, in seconds. Setting it alone does not store the session. */
  get #maxAge(): number | undefined {
    const { authenticatedAt } = this.#session;
    // A sign-in since then has decided it anew.
    const isOld = authenticatedAt !== undefined && authenticatedAt !== this.#given?.authenticatedAt;
    return isOld ? undefined : this.#given?.seconds;
  }

  /** The lifetime in seconds of the cookie that the client has or would get. 0 means until the browser is closed. */
  get #lifetime(): number {
    return this.settings.lifetimeOf(this.request.client);
  }

  #open(): SessionBag {
    const lifetime = this.#maxAge ?? this.#lifetime;
    const maxAge = lifetime === 0 ? null : lifetime * 1000;
    const change = (next: number | null) => this.#changeLifetime(next);
    const cookie = new SessionCookie(maxAge, this.settings.describeCookie(this.request.request), change);
    return propertyBag({ values: new BagValues(this.#session, cookie), owner: this });
  }

  #leave(id: string, values: Map<string, unknown>): void {
    this.#bag?.[CONTENT].values.leave(id, values);
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

  /** Called before a save. Stores the lifetime of the cookie, and derives the principal from the attributes. */
  #complete(): void {
    this.#tellUntold();
    const session = this.#session;
    if (!this.#bag || session.attributeNames.length === 0) return;
    const maxAge = this.#maxAge;
    if (maxAge !== undefined && maxAge !== this.#lifetime) session.setOwnAttribute(COOKIE_MAX_AGE_ATTRIBUTE, maxAge);
    this.#given = undefined;
    this.#principal.record(this.#bag);
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
