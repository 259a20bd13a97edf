import type { SessionData } from 'express-session';

declare module 'express-session' {
  interface SessionData {
    /** Of the account. */
    name: string;
    /** The items in the cart. */
    items: string[];
  }
}

/** A session as the store lists it. */
export type StoredSession = SessionData & { readonly id: string };
