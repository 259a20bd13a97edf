import { SessionStateError } from '../errors/session.errors.js';
import type { SessionResponse } from './session-response.js';

/** Seconds for which a session can be remembered. @throws SessionStateError when none can be */
export function secondsRemembered(response: SessionResponse | undefined): number {
  if (!response) throw new SessionStateError(REMEMBERED_OUTSIDE);
  if (response.rememberedFor === undefined) throw new SessionStateError(NOT_REMEMBERED);
  return response.rememberedFor;
}

const REMEMBERED_OUTSIDE =
  'A session can be remembered only in an HTTP request, because it is the cookie that outlives the browser. Elsewhere, ' +
  'set session.maxInactiveInterval';

/** The error of remembering a session where the application does not say for how long. */
export const NOT_REMEMBERED = "No session can be remembered: set the option `cookie.rememberMe`, for example to '30d'";
