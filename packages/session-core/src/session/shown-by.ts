import type { ReadonlySession } from './session.js';

/** Where an object of another class has the session that it shows. */
export const SHOWN_SESSION: unique symbol = Symbol('shown session');

/** The session that an object shows, or the object itself. */
export function shownBy(session: object | undefined): object | undefined {
  return (session as { readonly [SHOWN_SESSION]?: object } | undefined)?.[SHOWN_SESSION] ?? session;
}

/** What logs may show of a session: no token and no value of an attribute. */
export function describeSession(session: ReadonlySession & { readonly isNew: boolean }, id: string): object {
  const { isNew, creationTime, lastAccessedTime, maxInactiveInterval, absoluteTimeout, attributeNames } = session;
  return { id, isNew, creationTime, lastAccessedTime, maxInactiveInterval, absoluteTimeout, attributeNames };
}
