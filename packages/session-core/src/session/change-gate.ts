import { SessionStateError } from '../errors/session.errors.js';
import type { SessionResponse } from './session-response.js';

/** What decides whether a session may be changed. */
export interface ChangeGate {
  /** Every change throws this error. */
  readonly refusal: Error | undefined;
  /** Whether the session was ended in this request. */
  readonly isOver: boolean;
  /** Whether the session is not stored yet. */
  readonly isNew: boolean;
  /** Once the headers of this response were sent, no change may need a cookie. */
  readonly response: SessionResponse | undefined;
}

/** @throws the refusal */
export function assertAllowed({ refusal }: ChangeGate): void {
  if (refusal) throw refusal;
}

/** @throws SessionStateError when the session was ended in this request */
export function assertWritable(gate: ChangeGate): void {
  assertAllowed(gate);
  if (gate.isOver) throw new SessionStateError(OVER);
}

/** For a change that starts a new session. @throws SessionStateError when its cookie can no longer be set */
export function assertStartable(gate: ChangeGate): void {
  assertWritable(gate);
  const { response, isNew } = gate;
  if (isNew && response?.headersSent) throw new SessionStateError(response.lateChange ?? LATE_START);
}

/** For a change of the token. @throws SessionStateError when the client would not get it */
export function assertRotatable(gate: ChangeGate): void {
  assertWritable(gate);
  const { response } = gate;
  if (response?.headersSent) throw new SessionStateError(response.lateChange ?? LATE_ROTATION);
}

/** Seconds for which a session can be remembered. @throws SessionStateError when none can be */
export function rememberedFor({ response }: ChangeGate): number {
  if (!response) throw new SessionStateError(REMEMBERED_OUTSIDE);
  if (response.rememberedFor === undefined) throw new SessionStateError(NOT_REMEMBERED);
  return response.rememberedFor;
}

const OVER =
  'The session was ended in this request and cannot be changed any more. To keep some attributes after a logout, ' +
  'remove the others and set principalName to undefined instead of calling signOut() or invalidate()';

const LATE_START =
  'A new session cannot be started after the headers of the response were sent, because its cookie can no longer be ' +
  'set. Set an attribute before the first byte';

const LATE_ROTATION =
  'The session id cannot be changed after the headers of the response were sent, because the client would not get the ' +
  'new cookie and would lose its session. Call signIn() or changeSessionId() before the first byte';

const REMEMBERED_OUTSIDE =
  'A session can be remembered only in an HTTP request, because it is the cookie that outlives the browser. Elsewhere, ' +
  'set session.maxInactiveInterval';

/** The error of remembering a session where the application does not say for how long. */
export const NOT_REMEMBERED = "No session can be remembered: set the option `cookie.rememberMe`, for example to '30d'";
