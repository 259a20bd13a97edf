import { SessionStateError } from '../errors/session.errors.js';
import type { SessionResponse } from './session-response.js';
import type { SessionState } from './session-state.js';

/** Refuses the changes of a session that could not be stored, or whose client would not hear of them. */
export class ChangeGate {
  /** From now on, changes that need a cookie are refused once the headers of this response were sent. */
  response: SessionResponse | undefined;
  /** From now on, every change throws this error. */
  refusal: Error | undefined;

  constructor(private readonly state: SessionState) {}

  /** Whether a new token would reach the client of a request. */
  get isResponseOpen(): boolean {
    return this.response?.headersSent === false;
  }

  /** @throws the refusal */
  assertAllowed(): void {
    if (this.refusal) throw this.refusal;
  }

  /** @throws SessionStateError when the session was ended in this request */
  assertWritable(): void {
    this.assertAllowed();
    if (this.state.isOver) throw new SessionStateError(OVER);
  }

  /** For a change that starts a new session. @throws SessionStateError when its cookie can no longer be set */
  assertStartable(): void {
    this.assertWritable();
    const { response, state } = this;
    if (state.isNew && response?.headersSent) throw new SessionStateError(response.lateChange ?? LATE_START);
  }

  /** For a change of the token. @throws SessionStateError when the client would not get it */
  assertRotatable(): void {
    this.assertWritable();
    const { response } = this;
    if (response?.headersSent) throw new SessionStateError(response.lateChange ?? LATE_ROTATION);
  }

  /** Seconds for which a session can be remembered. @throws SessionStateError when there is no such time */
  rememberedFor(): number {
    const { response } = this;
    if (!response) throw new SessionStateError(REMEMBERED_OUTSIDE);
    if (response.rememberedFor === undefined) throw new SessionStateError(NOT_REMEMBERED);
    return response.rememberedFor;
  }
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
