/**
 * The readable part of a session. Times are epoch milliseconds. A value that cannot be decoded reads as undefined, and
 * stays in the store until you set or remove the attribute.
 */
export interface ReadonlySession {
  /** The session id. It opens nothing and is safe to log, unless the option `sessionIds` is `'plain'`. */
  readonly id: string;
  /** When the session was created: epoch milliseconds by the clock of the store. */
  readonly creationTime: number;
  /** The last access that the store knows; up to `touchInterval` before the real one. */
  readonly lastAccessedTime: number;
  /** The idle timeout in whole seconds; negative: none. */
  readonly maxInactiveInterval: number;
  /** The absolute timeout in whole seconds since the creation or, if that was later, the sign-in; -1: none. */
  readonly absoluteTimeout: number;
  /** The name of the signed-in user, which finds the session; undefined when nobody is signed in. */
  readonly principalName: string | undefined;
  /**
   * When the user signed in by `signIn()`; undefined when nobody did. Epoch milliseconds by the clock of the store;
   * until the save, by the clock of the application.
   */
  readonly authenticatedAt: number | undefined;
  /** The names of the attributes, in a new array, without those that a read could not decode. */
  readonly attributeNames: SessionAttributeName[];
  /** The value of an attribute, or undefined. */
  getAttribute<K extends keyof SessionAttributes>(name: K): SessionAttributes[K] | undefined;
  /** One that `SessionAttributes` does not declare, or undefined. Nothing checks that it is a `T`. */
  getAttribute<T = unknown, N extends string = string>(name: OtherAttributeName<N>): T | undefined;
  /** The value of an attribute. @throws SessionAttributeError when there is none */
  getRequiredAttribute<K extends keyof SessionAttributes>(name: K): SessionAttributes[K];
  /** One that `SessionAttributes` does not declare. @throws SessionAttributeError when there is none */
  getRequiredAttribute<T = unknown, N extends string = string>(name: OtherAttributeName<N>): T;
  /** The value of an attribute, or `defaultValue` when there is none. */
  getAttributeOrDefault<K extends keyof SessionAttributes>(
    name: K,
    defaultValue: SessionAttributes[K],
  ): SessionAttributes[K];
  /** The value of an attribute that `SessionAttributes` does not declare, or `defaultValue` when there is none. */
  getAttributeOrDefault<T, N extends string = string>(name: OtherAttributeName<N>, defaultValue: T): T;
}

/**
 * A session. It saves your changes together before the response is sent, and writes only attributes that changed, also
 * in place. After `invalidate()`, reads give undefined and changes throw a `SessionStateError`.
 */
export interface Session extends ReadonlySession {
  /** True until the session has been stored for the first time. */
  readonly isNew: boolean;
  /** The browser that the session is bound to; undefined where it is bound to none. See the option `deviceBound`. */
  readonly device: BoundDevice | undefined;
  /**
   * Whether a save or `updateAttribute()` has found the session gone: expired, or ended, rotated or signed in to by
   * another request. The store takes no more changes of this object, except a sign-in of a visitor.
   */
  readonly isGone: boolean;
  /**
   * The idle timeout: whole seconds, or -1 for none. Set it to seconds, to a duration such as `'30m'`, to `'never'`, or
   * to 0 to end the session. It takes effect at the save. @throws RangeError when set to anything else
   */
  get maxInactiveInterval(): number;
  set maxInactiveInterval(timeout: number | string);
  /**
   * The absolute timeout, from the creation or, if that was later, the sign-in. A session that is already older expires
   * at the save. Read and set it like `maxInactiveInterval`. @throws RangeError when set to anything else
   */
  get absoluteTimeout(): number;
  set absoluteTimeout(timeout: number | string);
  /**
   * The name of the signed-in principal. To sign somebody in, call `signIn()` instead. Set it to a non-empty string of
   * well-formed Unicode, or to undefined to remove it together with `authenticatedAt`.
   *
   * In a request whose response has not begun, a change also changes the session id and removes `authenticatedAt`;
   * outside of requests, as in a job that renames a user, the rest of the session stays. The first principal changes
   * the idle timeout from the option `anonymousTimeout` to `timeout`, and its removal changes it back.
   * @throws TypeError when set to anything else; SessionStateError when set to another name in a message over an open
   *   connection, or after the response has begun
   */
  principalName: string | undefined;
  /**
   * Signs a user in. Call it once the user has proved who they are. The save then does all of this in one step:
   * - it changes the session id, so that the previous token opens nothing any more;
   * - it sets `principalName` to `name`, and `authenticatedAt` to the time of the store;
   * - with `remember: true`, it makes the cookie outlive the browser, and the idle timeout as long (option
   *   `cookie.rememberMe`); with `false`, it makes the cookie end with the browser, and sets the idle timeout to the
   *   option `timeout`;
   * - it sets the absolute timeout to the option `absoluteTimeout`, counted from now;
   * - it removes the attributes that are bound to the visitor: those of the option `visitorAttributes`, and all whose
   *   names begin with `nest-session.visitor.`, CSRF tokens among them. If another user was signed in, it removes all
   *   attributes. With `keep`, it keeps exactly the listed attributes.
   *
   * The save also writes attributes and timeouts that you set after this call. A save of the old id that is still in
   * flight changes nothing, or where the same user was signed in before, the attributes that stay and no others.
   *
   * If another request has changed the id of a visitor's session in the meantime, the save creates another session,
   * with the attributes that stay and an id of its own. If the session has ended, or a user was signed in to it, nobody
   * is signed in: this method or, more often, the save throws a `SessionGoneError`, which becomes a 409 response.
   * @throws TypeError when `name` is not a non-empty string of well-formed Unicode, or `remember` not a boolean;
   *   SessionBoundError when the name is larger than an attribute may be; SessionStateError when the headers of the
   *   response were sent, or with `remember` where no session can be remembered
   */
  signIn(name: string, options?: SessionSignIn): void;
  /**
   * Signs the user out: ends the session at the save, as `invalidate()` does, with every other live session that the
   * request presented, for example by a second cookie, and expires the cookie. If the store fails, the response is a
   * 503, and the client can repeat the request. If the session is that of another user by then, it stays: the save
   * throws a `SessionGoneError`, a 409 response. With the option `multipleSessions`, sessions of other aliases stay.
   */
  signOut(): void;
  /**
   * Sets an attribute; undefined or null removes it.
   * @throws SessionAttributeError when the value cannot be stored; SessionBoundError when the session would hold more
   *   than the options allow; SessionStateError when the session was invalidated, or is new and the headers of the
   *   response were sent
   */
  setAttribute<N extends SessionAttributeName>(
    name: N,
    value: N extends keyof SessionAttributes ? SessionAttributes[N] | undefined | null : unknown,
  ): void;
  /** Removes an attribute; without effect when there is none. */
  removeAttribute(name: SessionAttributeName): void;
  /**
   * Replaces an attribute by `update(current)` in the store, at once: of an attribute that several requests change, no
   * change is lost. `update` may run again with a newer value, so it should only compute; null or undefined removes the
   * attribute. Resolves to the new value, or to undefined when the session ended in the meantime. On a new session it
   * only sets the attribute. Rejects, and writes nothing, for a value that `setAttribute()` refuses.
   * @throws SessionConflictError when other requests kept updating the attribute for 5 seconds;
   *   ClientDisconnectedError when it would have to wait, or to be repeated, for a client that has disconnected;
   *   SessionStoreError when the store failed. Nothing was stored, unless the store did not reply in time
   */
  updateAttribute<K extends keyof SessionAttributes>(
    name: K,
    update: (current: SessionAttributes[K] | undefined) => SessionAttributes[K] | undefined,
  ): Promise<SessionAttributes[K] | undefined>;
  /** The same for an attribute that `SessionAttributes` does not declare. Nothing checks that its value is a `T`. */
  updateAttribute<T = unknown, N extends string = string>(
    name: OtherAttributeName<N>,
    update: (current: T | undefined) => T | undefined,
  ): Promise<T | undefined>;
  /**
   * Rotates the session: gives it a new id, and the client a new token. Returns the new id. Call it whenever the
   * privileges of the user change; `signIn()` rotates as well. From the save on, the old token opens nothing.
   * @throws SessionStateError when the headers of the response were sent
   */
  changeSessionId(): string;
  /**
   * Ends the session at the save, for every instance, and records its deleted event. The save throws a
   * `SessionGoneError` as with `signOut()`, which is for logouts.
   */
  invalidate(): void;
  /**
   * Saves the changes now instead of before the response. Resolves to `gone` if the session ended in the meantime, so
   * that nothing was saved.
   * @throws SessionStoreError when the store failed; SessionAttributeError or SessionBoundError when an object has
   *   become one that cannot be stored; SessionCreationRefusedError when the option `mayCreate` refuses a new session;
   *   SessionGoneError when the save should have started or ended a session or signed somebody in, but the session of
   *   the client had ended or changed
   */
  save(): Promise<SaveOutcome>;
}

/** How `Session.signIn()` signs a user in. */
export interface SessionSignIn {
  /**
   * Whether the user stays signed in when the browser is closed. @default false, but as it is for a remembered user who
   * signs in again to the same session
   */
  readonly remember?: boolean;
  /** Keeps exactly these attributes. @default all but those bound to the visitor, and none of another user */
  readonly keep?: readonly SessionAttributeName[];
  /** Whether the session may be bound to the browser, with the option `deviceBound`: not in a kiosk. @default true */
  readonly deviceBound?: boolean;
  /**
   * The claims of the ID token of an identity provider: what it pushes finds the session by them. The session keeps
   * `iss`, `sub`, `sid` and `iat`. It needs `ProviderLogoutModule` of @nest-session/provider-logout.
   * @default those of before, of a user who signs in again
   */
  readonly provider?: ProviderClaims;
}

/** What an identity provider says of a login, as in the payload of its ID token. Other claims are ignored. */
export interface ProviderClaims {
  /** The provider: its issuer, as the option `issuers` of `ProviderLogoutModule` has it. */
  readonly iss: string;
  /** The user, as this provider knows them. */
  readonly sub: string;
  /** The session at the provider: a non-empty string. Without it, only logouts of the user find the session. */
  readonly sid?: unknown;
  /**
   * When the ID token was issued, in seconds since the epoch: at most an hour ago.
   * @default now, by the clock of this process
   */
  readonly iat?: number | undefined;
}

/** The browser that a session is bound to. */
export interface BoundDevice {
  /** Whether the browser is known to have learned that it is: until then, its requests need no proof. */
  readonly bound: boolean;
  /** When it registered: epoch milliseconds by the clock of the store. */
  readonly since: number;
  /** How it signs, such as `'ES256'`. */
  readonly algorithm: string;
}

/** The result of a save. `gone` means that the session had ended, so that nothing was stored. */
export type SaveOutcome = 'saved' | 'gone';

/** The name of the index of principals, for `findByIndex()` and stores. A session has `principalName`. */
export const PRINCIPAL_NAME_INDEX_NAME = 'principal';

/**
 * The attributes of your sessions: `declare module '@nest-session/core' { interface SessionAttributes { items: Item[] }
 * }`. From then on, any other name is a type error, unless you declare `[name: string]: unknown` as well.
 */
export interface SessionAttributes {}

/** The names that attributes can have: those that `SessionAttributes` declares; any, while it declares none. */
export type SessionAttributeName = [keyof SessionAttributes] extends [never]
  ? string
  : Extract<keyof SessionAttributes, string>;

/** The names that `SessionAttributes` declares one by one. */
type DeclaredName = keyof {
  [N in keyof SessionAttributes as string extends N ? never : number extends N ? never : N]: SessionAttributes[N];
};

/** A name that attributes can have although `SessionAttributes` does not declare it. */
type OtherAttributeName<N extends string> = N extends DeclaredName ? never : N extends SessionAttributeName ? N : never;

/** Where an object of another class has the session that it shows. */
export const SHOWN_SESSION: unique symbol = Symbol('shown session');

/** The session that an object shows, or the object itself. */
export function shownBy(session: object | undefined): object | undefined {
  return (session as { readonly [SHOWN_SESSION]?: object } | undefined)?.[SHOWN_SESSION] ?? session;
}
