import type { Session as CoreSession } from '@nest-session/core';
import type { SaveOutcome } from '@nest-session/core/internal';

/** The members of a property bag that express-session does not have. You cannot assign to them. */
export type SessionMembers = Readonly<Omit<CoreSession, 'id' | 'save'>>;

// `req.session` has the types of @types/express-session, with the `SessionData` of the application.
declare module 'express-session' {
  interface Session extends SessionMembers {
    /** Without a callback, resolves when the session was replaced. It takes effect at the save. */
    regenerate(): Promise<void>;
    /** Without a callback, resolves when the session has ended. */
    destroy(): Promise<void>;
    /** Without a callback, resolves when the session was loaded again. */
    reload(): Promise<void>;
    /** Without a callback, resolves when the changes are saved. */
    save(): Promise<SaveOutcome>;
  }
}
