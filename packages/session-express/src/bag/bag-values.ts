import type { ReadonlySession } from '@nest-session/core';
import type { TrackedSession } from '@nest-session/core/internal';
import type { SessionCookie } from './session-cookie.js';

// Attributes whose names begin with it belong to the library and do not appear as properties.
const RESERVED = 'nest-session.';

/**
 * The values of one property bag. They are the attributes of a session until the request replaces or ends the session.
 * After that, they are a copy of the last values, and changes have no effect.
 */
export class BagValues {
  #left: { readonly id: string; readonly values: Map<string, unknown> } | undefined;

  constructor(
    readonly session: TrackedSession,
    readonly cookie: SessionCookie,
  ) {}

  /** The id of the session, or its last id. */
  get id(): string {
    return this.#left?.id ?? this.session.id;
  }

  /** Whether the request has replaced or ended the session. */
  get isLeft(): boolean {
    return this.#left !== undefined;
  }

  /** The names of the properties. */
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

  /** Detaches the bag from the session. From then on it shows these values. */
  leave(id: string, values: Map<string, unknown>): void {
    this.#left ??= { id, values };
    this.cookie.detach();
  }
}

/** The attributes of a session that appear as properties. */
export function propertiesOf(session: ReadonlySession): Map<string, unknown> {
  return new Map(propertyNamesOf(session).map((name) => [name, session.getAttribute(name)]));
}

function propertyNamesOf(session: ReadonlySession): string[] {
  return session.attributeNames.filter(isOwn);
}

/** Whether the application may use a name. */
export function isOwn(name: string): boolean {
  return !name.startsWith(RESERVED);
}
