/** What another library stored of a session, as this library keeps it. */
export interface ForeignSessionData {
  /** The attributes by name; no value is undefined or null. */
  readonly attributes: ReadonlyMap<string, unknown>;
  /** The name of the signed-in principal. */
  readonly principalName: string | undefined;
}

/** The sessions that another library keeps in the same store. A store that can move them provides this class. */
export abstract class ForeignSessions {
  /**
   * Moves the entry under a key to the session `id`, unless there is no entry, or it was moved before, or it may have been
   * there when `IndexedSessionRepository` ended all sessions of its principal, or `SessionRepository` every session. The
   * session ends when its timeout passes or when the entry would have ended, whichever is earlier. Then the entry is gone.
   * `read` gives the session in the text of the entry; undefined when it holds none.
   * @throws SessionStoreError when the store failed
   */
  abstract move(key: string, id: string, read: (text: string) => ForeignSessionData | undefined): Promise<void>;
}
