import type { Session as CoreSession } from '@nest-session/core';
import type { SaveOutcome } from '@nest-session/core/internal';

/** What a property bag has besides the members of express-session. None of it can be assigned. */
export type SessionMembers = Readonly<Omit<CoreSession, 'id' | 'save'>>;

// The types of `req.session` are those of @types/express-session, with the `SessionData` of the application.
declare module 'express-session' {
  interface Session extends SessionMembers {
    /** Without a callback: resolves when the session is another one. Takes effect at the save. */
    regenerate(): Promise<void>;
    /** Without a callback: resolves when the session has ended. */
    destroy(): Promise<void>;
    /** Without a callback: resolves when the session was loaded again. */
    reload(): Promise<void>;
    /** Without a callback: resolves when the changes are saved. */
    save(): Promise<SaveOutcome>;
  }
}
