import { SessionGoneError } from '@nest-session/core';
import {
  COOKIE_MAX_AGE_ATTRIBUTE,
  INITIALIZED_ATTRIBUTE,
  type RequestSession,
  type SaveOutcome,
  TrackedSession,
} from '@nest-session/core/internal';
import { BagValues } from '../bag/bag-values.js';
import { propertyBag } from '../bag/property-bag.js';
import {
  type BagOwner,
  type Callback,
  CONTENT,
  type IsTold,
  type SessionBag,
  type Update,
} from '../bag/session-bag.js';
import { SessionCookie } from '../bag/session-cookie.js';
import type { BagSettings } from './bag-settings.js';
import { PrincipalRecorder } from './principal.recorder.js';
import { SessionCallbacks } from './session-callbacks.js';

/** The `req.session` of one request or message. The application may replace, end or unset it. */
export class RequestBag implements BagOwner {
  readonly #request: RequestSession;
  readonly #settings: BagSettings;
  readonly #session: TrackedSession;
  readonly #principal: PrincipalRecorder;
  #callbacks: SessionCallbacks | undefined;
  #bag: SessionBag | null | undefined;
  /** Whether the application has read the id of the session since that was told. */
  #isIdRead = false;
  /** The failure of a save that nobody waited for. */
  #untold: SessionGoneError | undefined;
  /** The lifetime that the cookie of a new session was given, and since when somebody was signed in to it by then. */
  #given: { readonly seconds: number; readonly authenticatedAt: number | undefined } | undefined;

  /** @throws the error of a failed load */
  constructor(request: RequestSession, settings: BagSettings) {
    this.#request = request;
    this.#settings = settings;
    this.#session = TrackedSession.of(request.session);
    this.#principal = new PrincipalRecorder(
      this.#session,
      request.request,
      settings.principal,
      settings.reportNoPrincipal,
    );
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

  /** The id of the session. */
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
    session.maxInactiveInterval = this.#settings.timeoutOf(undefined);
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
    if (error && !this.#request.hasFailed) throw error;
  }

  async reload(): Promise<void> {
    const values = this.#copy();
    if (!(await this.#request.reload())) throw new Error('failed to load session');
    this.#leave(this.#session.id, values);
    this.#bag = this.#open();
  }

  callBack(result: Promise<unknown>, callback: Callback): void {
    this.#callbacks ??= new SessionCallbacks(this.#request);
    this.#callbacks.add(result, callback);
  }

  /** Resolves when the callbacks were called that wait for the session; undefined when there are none. */
  get callbacksLeft(): Promise<unknown> | undefined {
    return this.#callbacks?.left;
  }

  tellOfId(): void {
    this.#isIdRead = true;
    if (this.#request.response.headersSent) this.#tellOfId();
  }

  #tellOfId(): void {
    if (this.#isIdRead) this.#settings.tellOfId();
    this.#isIdRead = false;
  }

  keepPrincipal(name: string, update: Update): Update {
    return this.#principal.keeping(name, update, this.#bag ?? {});
  }

  #unset(): void {
    this.#leave(this.#session.id, this.#copy());
    if (this.#settings.unset === 'destroy') this.#session.signOut();
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
    return this.#settings.lifetimeOf(this.#request.client);
  }

  #open(): SessionBag {
    const lifetime = this.#maxAge ?? this.#lifetime;
    const maxAge = lifetime === 0 ? null : lifetime * 1000;
    const change = (next: number | null) => this.#changeLifetime(next);
    const cookie = new SessionCookie(maxAge, this.#settings.describeCookie(this.#request.request), change);
    return propertyBag({ values: new BagValues(this.#session, cookie), owner: this });
  }

  /** Detaches the current bag from the session. From then on it shows these values. */
  #leave(id: string, values: Map<string, unknown>): void {
    this.#bag?.[CONTENT].values.leave(id, values);
  }

  #changeLifetime(maxAge: number | null): void {
    const session = this.#session;
    const seconds = maxAge === null ? 0 : Math.ceil(maxAge / 1000);
    if (maxAge !== null && seconds <= 0) return void (session.maxInactiveInterval = 0);
    session.maxInactiveInterval = maxAge === null ? this.#settings.timeoutOf(session.principalName) : seconds;
    if (session.isNew) return void (this.#given = { seconds, authenticatedAt: session.authenticatedAt });
    // Browsers shorten a long one.
    if ([this.#lifetime, session.peekAttribute(COOKIE_MAX_AGE_ATTRIBUTE)].includes(seconds)) return;
    session.setOwnAttribute(COOKIE_MAX_AGE_ATTRIBUTE, seconds);
    this.#request.sendAgain();
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
    const { isUnavailable, response } = this.#request;
    if (!this.#settings.saveUninitialized || !this.#session.isNew || this.#session.isGone) return;
    if (!isUnavailable && !response.headersSent) {
      this.#session.setOwnAttribute(INITIALIZED_ATTRIBUTE, true);
    }
  }
}
