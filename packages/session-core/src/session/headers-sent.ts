import { SessionStateError } from '../errors/session.errors.js';
import type { SessionResponse } from './session-response.js';

// Once the headers of the response were sent, its request starts no session and changes no token, because the client
// would not get the cookie.

/**
 * For a change that starts a new session.
 * @throws SessionStateError when the cookie of a new session can no longer be set
 */
export function assertStartable(response: SessionResponse | undefined): void {
  if (response?.headersSent) throw new SessionStateError(response.lateChange ?? LATE_START);
}

/** Whether there is a response that can still give its client another token. */
export function takesToken(response: SessionResponse | undefined): boolean {
  return response !== undefined && !response.headersSent && !response.isWaiting;
}

/** For a change of the token. @throws SessionStateError when the client would not get it */
export function assertRotatable(response: SessionResponse | undefined): void {
  if (response && !takesToken(response)) throw new SessionStateError(response.lateChange ?? LATE_ROTATION);
}

const LATE_START =
  'A new session cannot be started after the headers of the response were sent, because its cookie can no longer be ' +
  'set. Set an attribute before the first byte';

const LATE_ROTATION =
  'The session id cannot be changed after the headers of the response were sent, because the client would not get the ' +
  'new cookie and would lose its session. Call signIn() or changeSessionId() before the first byte';
