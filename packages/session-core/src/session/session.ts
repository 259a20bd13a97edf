import type { OtherAttributeName, SessionAttributeName, SessionAttributes } from './session-attributes.js';

/**
 * The readable part of a session. Times are epoch milliseconds. A value that cannot be decoded reads as undefined; with
 * the option `undecodable: 'throw'`, each read of it throws a `SessionAttributeError`.
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
  /** The name of the signed-in user, by which the session can be found; undefined when there is none. */
  readonly principalName: string | undefined;
  /**
   * When the user signed in by `signIn()`: epoch milliseconds by the clock of the store; the application's until the
   * save. Undefined when nobody did.
   */
  readonly authenticatedAt: number | undefined;
  /**
   * The names of the attributes, in a new array. Without those of which a read found that they cannot be decoded, unless
   * such reads throw.
   */
  readonly attributeNames: SessionAttributeName[];
  /** The value of an attribute, or undefined when there is none. */
  getAttribute<K extends keyof SessionAttributes>(name: K): SessionAttributes[K] | undefined;
  /**
   * The value of an attribute that `SessionAttributes` does not declare, or undefined. Nothing checks that it is a `T`.
   */
  getAttribute<T = unknown, N extends string = string>(name: OtherAttributeName<N>): T | undefined;
  /** The value of an attribute. @throws SessionAttributeError when there is none */
  getRequiredAttribute<K extends keyof SessionAttributes>(name: K): SessionAttributes[K];
  /**
   * The value of an attribute that `SessionAttributes` does not declare. @throws SessionAttributeError when there is
   * none
   */
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
 * A session. Your changes are kept in memory and saved together before the response is sent; an object that you read
 * and change in place is saved as well. Only changed attributes are written. After `invalidate()`, reads give undefined
 * and writes throw a `SessionStateError`.
 */
export interface Session extends ReadonlySession {
  /** True until the session has been stored for the first time. */
  readonly isNew: boolean;
  /**
   * Whether the session is over elsewhere, as far as a save of this object has found out: by its timeout, because another
   * request ended it, or because its id changed. No change of it is stored any more. False until a save has found that,
   * `updateAttribute()` included, and for a session that this object itself has ended.
   */
  readonly isGone: boolean;
  /**
   * The idle timeout. Reads as whole seconds; -1: none. Set it to seconds or to a duration such as `'30m'`; to
   * `'never'` or -1 for none; to 0 to end the session, as `invalidate()` does. Takes effect at the save.
   * @throws RangeError when set to anything else
   */
  get maxInactiveInterval(): number;
  set maxInactiveInterval(timeout: number | string);
  /**
   * The absolute timeout, which counts from the creation or, if that was later, the sign-in: a session that is already
   * older expires at the save. Reads and is set like `maxInactiveInterval`.
   * @throws RangeError when set to anything else
   */
  get absoluteTimeout(): number;
  set absoluteTimeout(timeout: number | string);
  /**
   * The name of the signed-in principal, by which the session can be found; a non-empty string of well-formed Unicode,
   * or undefined to remove it, and `authenticatedAt` with it. To sign somebody in, call `signIn()` instead.
   *
   * In a request whose response has not begun, another principal also changes the session id, and removes
   * `authenticatedAt`. Elsewhere, as in a job that renames a user, the rest of the session stays as it is. The first
   * principal, or none, also changes the idle timeout from the option `anonymousTimeout` to `timeout`, or back.
   * @throws TypeError when set to anything else
   */
  principalName: string | undefined;
  /**
   * Signs a user in. Call it once the user has shown who they are. At the save, in one step:
   * - the session changes its id, so that the token of before opens nothing any more;
   * - `principalName` is `name`, and `authenticatedAt` the time of the store;
   * - with `remember`, the cookie outlives the browser and the idle timeout is as long (option `cookie.rememberMe`);
   *   without, the cookie ends with the browser and the idle timeout is the option `timeout`, whatever was before;
   * - the absolute timeout is the option `absoluteTimeout`, and counts from now;
   * - all attributes stay but those bound to the visitor: the option `visitorAttributes`, and all names that begin with
   *   `nest-session.visitor.`, CSRF tokens among them. With `keep`, exactly the listed attributes stay.
   *
   * Attributes and timeouts that you set after the call are saved as well. A save of the old id that is still in flight
   * may change the attributes that stay, and no others.
   * When the session has ended meanwhile, or got another id, nobody is signed in: this method or, mostly, the save throws
   * a `SessionGoneError`, which is answered 409.
   * @throws TypeError when `name` is not a non-empty string of well-formed Unicode; SessionBoundError when it is larger
   *   than an attribute may be; SessionStateError when the headers
   *   of the response were sent, or with `remember` where no session can be remembered
   */
  signIn(name: string, options?: SignInOptions): void;
  /**
   * Signs the user out: ends the session at the save, as `invalidate()` does, and with it every other live session that
   * the request presented, such as that of a second cookie. Expires the cookie. When the store fails, the response is a
   * 503, and the client can repeat the request. With the option `multipleSessions`, the sessions of other aliases stay.
   */
  signOut(): void;
  /**
   * Sets an attribute; undefined or null removes it.
   * @throws SessionAttributeError when the value cannot be stored; SessionBoundError when the session would hold more than
   *   the options allow; SessionStateError when the session was invalidated, or is new and the headers of the response
   *   were sent
   */
  setAttribute<N extends SessionAttributeName>(
    name: N,
    value: N extends keyof SessionAttributes ? SessionAttributes[N] | undefined | null : unknown,
  ): void;
  /** Removes an attribute; without effect when there is none. */
  removeAttribute(name: SessionAttributeName): void;
  /**
   * Replaces an attribute by `update(current)` in the store, at once. Use it for an attribute that several requests
   * change: no change is lost. Updates of one attribute in this process wait for each other. `update` may run again
   * with a newer value, so it should only compute. Resolves to the new value, or to undefined when the session ended in
   * the meantime. On a new session it only sets the attribute.
   * Rejects, and writes nothing, when the value cannot be stored or exceeds a bound, as `setAttribute()` does.
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
   * Rotates the session: gives it a new id and the client a new token. Returns the new id. Call it whenever privileges
   * change; `signIn()` does it as well. From the save on, the old token opens nothing.
   * @throws SessionStateError when the headers of the response were sent
   */
  changeSessionId(): string;
  /** Ends the session at the save, for every instance, and records its deleted event. For a logout, see `signOut()`. */
  invalidate(): void;
  /**
   * Saves the changes now instead of before the response. `gone`: the session ended in the meantime, and nothing was
   * saved.
   * @throws SessionStoreError when the store failed; SessionAttributeError or SessionBoundError when an object has become
   *   one that cannot be stored; SessionCreationRefusedError when the option `mayCreate` refuses a new session;
   *   SessionGoneError when the save should have started a session or signed somebody in, and the one that the client had
   *   is over
   */
  save(): Promise<SaveOutcome>;
}

/** How `Session.signIn()` signs a user in. */
export interface SignInOptions {
  /** Whether the user stays signed in when the browser is closed. @default false */
  readonly remember?: boolean;
  /** Keeps exactly these attributes of the session. @default all but those bound to the visitor */
  readonly keep?: readonly SessionAttributeName[];
}

/** What a save did. `gone`: the session had ended, and nothing was stored. */
export type SaveOutcome = 'saved' | 'gone';

/** The name of the attribute that holds the principal's name, and of its index. It is Spring Session's name. */
export const PRINCIPAL_NAME_INDEX_NAME =
  'org.springframework.session.FindByIndexNameSessionRepository.PRINCIPAL_NAME_INDEX_NAME';
