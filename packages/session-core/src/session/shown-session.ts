/** Where an object of another class has the session that it shows. */
export const SHOWN_SESSION: unique symbol = Symbol('shown session');

/** The session that an object shows, or the object itself. */
export function shownBy(session: object | undefined): object | undefined {
  return (session as { readonly [SHOWN_SESSION]?: object } | undefined)?.[SHOWN_SESSION] ?? session;
}
