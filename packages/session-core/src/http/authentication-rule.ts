/** The key under which the decorators mark a handler or its class. */
export const AUTHENTICATION = Symbol('AUTHENTICATION');

/** The oldest sign-in that a handler accepts: `maxAge` is in milliseconds. Null if it requires no sign-in. */
export type AuthenticationRule = { readonly maxAge: number } | null;

export const PUBLIC = null;

/** Accepts a sign-in of any age. */
export const SIGNED_IN = { maxAge: Infinity } as const;
