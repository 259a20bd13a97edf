/**
 * The attributes an application keeps in its sessions. Declare yours to have them typed:
 * `declare module '@nest-session/core' { interface SessionAttributes { items: Item[] } }`
 */
export interface SessionAttributes {}

/** What can be read of a session. Times are epoch milliseconds. */
export interface ReadonlySession {
  /** The id under which the session is stored; safe to log, it opens nothing. */
  readonly id: string;
  /** When the session was created: epoch milliseconds by the clock of the store. */
  readonly creationTime: number;
  /** The last access that the store has recorded; behind the real one by up to `touchInterval`. */
  readonly lastAccessedTime: number;
  /** Whole seconds without access after which the session expires; negative: never. */
  readonly maxInactiveInterval: number;
  /** Whole seconds from its creation after which the session expires, however much it is used; -1: never. */
  readonly absoluteTimeout: number;
  /** The name of the signed-in principal, by which the session can be found; undefined when there is none. */
  readonly principalName: string | undefined;
  /** The names of the attributes, a fresh array. */
  readonly attributeNames: string[];
  /** The attribute's value, or undefined when there is none. */
  getAttribute<K extends keyof SessionAttributes>(name: K): SessionAttributes[K] | undefined;
  /**
   * The value of an attribute that `SessionAttributes` does not declare, or undefined. Nothing checks that it is a `T`.
   */
  getAttribute<T = unknown>(name: string): T | undefined;
  /** The attribute's value. @throws SessionAttributeError when there is none */
  getRequiredAttribute<K extends keyof SessionAttributes>(name: K): SessionAttributes[K];
  /**
   * The value of an attribute that `SessionAttributes` does not declare. @throws SessionAttributeError when there is
   * none
   */
  getRequiredAttribute<T = unknown>(name: string): T;
  /** The attribute's value, or `defaultValue` when there is none. */
  getAttributeOrDefault<K extends keyof SessionAttributes>(
    name: K,
    defaultValue: SessionAttributes[K],
  ): SessionAttributes[K];
  /** The value of an attribute that `SessionAttributes` does not declare, or `defaultValue` when there is none. */
  getAttributeOrDefault<T>(name: string, defaultValue: T): T;
}

/**
 * A session. Changes are kept in memory and stored together, as a delta, before the response leaves; an object that
 * was read and then changed in place is stored as well. After `invalidate()` reads give undefined and writes throw
 * `SessionStateError`.
 */
export interface Session extends ReadonlySession {
  /** True until the session has been stored for the first time. */
  readonly isNew: boolean;
  /**
   * The idle timeout. Reads as whole seconds, -1 for none. Set seconds, or a duration such as `'30m'`; `'never'` or -1
   * for none; 0 to end the session, as `invalidate()` does. Takes effect at the save.
   * @throws RangeError when set to anything else
   */
  get maxInactiveInterval(): number;
  set maxInactiveInterval(timeout: number | string);
  /**
   * The absolute timeout, which counts from the creation: a session that is older than that by now expires. Reads and
   * is set as `maxInactiveInterval`; takes effect at the save.
   * @throws RangeError when set to anything else
   */
  get absoluteTimeout(): number;
  set absoluteTimeout(timeout: number | string);
  /**
   * The name of the signed-in principal, by which the session can be found; a non-empty string, or undefined to remove
   * it. @throws TypeError when set to anything else
   */
  principalName: string | undefined;
  /** Sets an attribute; undefined or null removes it. @throws SessionAttributeError when the value cannot be stored */
  setAttribute<N extends string>(
    name: N,
    value: N extends keyof SessionAttributes ? SessionAttributes[N] | undefined | null : unknown,
  ): void;
  /** Removes an attribute; without effect when there is none. */
  removeAttribute(name: string): void;
  /**
   * Stores `update(current)` for an attribute that many requests change, at once and without losing any of theirs:
   * when another request was faster, `update` runs again with its value. Resolves to the value that was stored, or
   * undefined when the session has ended meanwhile. On a new session, which nobody shares yet, it only sets.
   */
  updateAttribute<K extends keyof SessionAttributes>(
    name: K,
    update: (current: SessionAttributes[K] | undefined) => SessionAttributes[K] | undefined,
  ): Promise<SessionAttributes[K] | undefined>;
  /** The same for an attribute that `SessionAttributes` does not declare. Nothing checks that its value is a `T`. */
  updateAttribute<T = unknown>(name: string, update: (current: T | undefined) => T | undefined): Promise<T | undefined>;
  /**
   * Gives the session a new id and the client a new token, and returns the id; call it when privileges change. Takes
   * effect at the save, from which on the old token opens nothing.
   */
  changeSessionId(): string;
  /** Ends the session at the save: its data is gone for every node and its deleted event is recorded. */
  invalidate(): void;
  /**
   * Stores the changes now instead of before the response. `gone`: the session ended in the meantime and nothing was
   * stored. @throws SessionStoreError when the store failed
   */
  save(): Promise<SaveOutcome>;
}

/** What a save did. `gone`: the session had ended, and nothing was stored. */
export type SaveOutcome = 'saved' | 'gone';

/** The attribute, and the index, that hold the principal's name; the name is Spring Session's. */
export const PRINCIPAL_NAME_INDEX_NAME =
  'org.springframework.session.FindByIndexNameSessionRepository.PRINCIPAL_NAME_INDEX_NAME';
