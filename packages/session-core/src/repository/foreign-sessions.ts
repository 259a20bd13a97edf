/** The session that another library stored, in the form that this library keeps. */
export interface ForeignSessionData {
  /** The attributes by name. No value is undefined or null. */
  readonly attributes: ReadonlyMap<string, unknown>;
  /** The name of the signed-in principal. */
  readonly principalName: string | undefined;
  /** How long the other library keeps the session when it writes it again, in milliseconds; unset: not at all. */
  readonly longestLife?: number;
}

/** The sessions that another library keeps in the same store. A store that can take them over provides this class. */
export abstract class ForeignSessions {
  /** Why the store takes over none, and what to do, as a sentence; undefined when it does. */
  abstract readonly refusal: string | undefined;

  /**
   * Turns the entry under a key into the session `id`, and deletes the entry. The session ends when its timeout passes
   * or when the entry would have ended, whichever is earlier. Nothing happens if there is no entry, if it was taken
   * over before, or if it may be older than the last call that ended every session, or all sessions of its principal.
   * Resolves to whether this call has stored the session.
   * @param read returns the session in the text of the entry, or undefined if the text holds none
   * @param device what the session shows as its device; unset: nothing
   * @throws SessionStoreError when the store failed
   */
  abstract move(
    key: string,
    id: string,
    read: (text: string) => ForeignSessionData | undefined,
    device?: string,
  ): Promise<boolean>;

  /**
   * Deletes the entry under a key, and prevents that it is turned into the session `id`, for as long as it would have
   * lived. Nothing happens if there is no entry. Resolves to whether there was one.
   * @param read as of `move()`; undefined also for a session that is not to end
   * @throws SessionStoreError when the store failed
   */
  abstract end(key: string, id: string, read: (text: string) => ForeignSessionData | undefined): Promise<boolean>;
}
