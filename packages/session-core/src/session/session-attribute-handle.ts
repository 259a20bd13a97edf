import type { ReadonlySession, Session } from './session.js';

/**
 * An attribute with its name and its type in one place: see `sessionAttribute()`. `T` is the type of its values, `D`
 * what reads give where there is none.
 */
export interface SessionAttributeHandle<T, D extends T | undefined = undefined> {
  /** The name of the attribute. */
  readonly name: string;
  /** The value, or the default when there is none. */
  get(session: Pick<ReadonlySession, 'getAttribute'>): T | D;
  /** Sets the attribute; undefined or null removes it. @throws as `session.setAttribute()` does */
  set(session: Session, value: T | undefined | null): void;
  /**
   * `session.updateAttribute()`: loses no update of concurrent requests. `update` gets the default when there is none.
   */
  update(session: Session, update: (current: T | D) => T | undefined): Promise<T | undefined>;
}

/**
 * Makes a typed handle of an attribute: `const Cart = sessionAttribute<Item[]>('items', [])`, then `Cart.get(session)`,
 * `Cart.set(session, items)` and `Cart.update(session, (items) => [...items, item])`.
 *
 * The default is plain data, and never shared: each call gets a copy of its own. The copy that `get()` gives is frozen,
 * because changes of it would not be saved.
 */
export function sessionAttribute<T>(name: string, defaultValue: T & {}): SessionAttributeHandle<T, T>;
export function sessionAttribute<T>(name: string): SessionAttributeHandle<T>;
export function sessionAttribute<T>(name: string, defaultValue?: T): SessionAttributeHandle<T, T | undefined> {
  const copyOfDefault = () => structuredClone(defaultValue);
  // Of the default as it is now, whatever happens to it later; and what cannot be copied fails here.
  defaultValue = copyOfDefault();
  return {
    name,
    get: (session) => session.getAttribute<T>(name) ?? frozen(copyOfDefault()),
    set: (session, value) => session.setAttribute(name, value),
    update: (session, update) => session.updateAttribute<T>(name, (current) => update(current ?? copyOfDefault())),
  };
}

/** The value, with all plain data in it frozen. */
function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const member of Object.values(value)) frozen(member);
  return value;
}
