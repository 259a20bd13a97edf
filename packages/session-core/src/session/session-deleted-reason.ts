/**
 * Why a session was deleted:
 * - `signed-out`: by `signOut()`, or by `BrowserSessions.end()`;
 * - `invalidated`: by `invalidate()`, or by a timeout of 0;
 * - `revoked`: from outside, by `Sessions.end()`, `Sessions.endAll()` or a method of the repository;
 * - `limit`: another sign-in of the user was one too many for `maxSessions`;
 * - `everybody`: by `endEverySession()`.
 */
export type SessionDeletedReason = 'signed-out' | 'invalidated' | 'revoked' | 'limit' | 'everybody';
