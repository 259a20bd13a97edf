import type { IncomingMessage } from 'node:http';
import { SessionStateError } from '../errors/session.errors.js';
import type { SessionState } from './session-state.js';

/** The response of the request that a session belongs to. */
export interface SessionResponse {
  /** Whether the headers were sent, so that no cookie can be added. */
  readonly headersSent: boolean;
  /** Whether the client disconnected before it had the response. */
  readonly isAborted?: boolean;
  /** The error of a change that needs a cookie, where it is not that the headers were sent. */
  readonly lateChange?: string;
  /** How long the client keeps the token of a remembered session, in seconds; undefined when it can remember none. */
  readonly rememberedFor?: number | undefined;
  /** Rejects when the application refuses to store a new session for the request; undefined when it is not asked. */
  readonly mayCreate?: (() => Promise<void>) | undefined;
  /** The text of the client that gets the response; undefined when it is not recorded. */
  device?(): string | undefined;
  /** The request of Node.js. */
  readonly request?: IncomingMessage;
}

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
