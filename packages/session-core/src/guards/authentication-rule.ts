/** The key under which the decorators mark a handler or its class. */
export const AUTHENTICATION = Symbol('AUTHENTICATION');

/** What a handler requires of its session; null: nothing. `maxAge`: milliseconds since the sign-in at most. */
export type AuthenticationRule = { readonly maxAge: number } | null;

export const PUBLIC = null;

/** However long ago the sign-in is. */
export const SIGNED_IN = { maxAge: Infinity } as const;
