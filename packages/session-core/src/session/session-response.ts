import type { IncomingMessage } from 'node:http';
import { SessionStateError } from '../errors/session.errors.js';

export interface SessionResponse {
  readonly headersSent: boolean;
  /** Whether it waits for the last save of the session, and is then sent. */
  readonly isWaiting?: boolean;
  readonly isAborted?: boolean;
  /** The error of a change that needs a cookie, where it is not that the headers were sent. */
  readonly lateChange?: string;
  /** How long the client keeps the token of a remembered session, in seconds; undefined when it can remember none. */
  readonly rememberedFor?: number | undefined;
  /** Rejects when the application refuses to store a new session for the request; undefined when it is not asked. */
  readonly mayCreate?: (() => Promise<void>) | undefined;
  /** The CSRF token that the client had without a session; undefined when it had none. */
  readonly visitorToken?: string | undefined;
  /** The text of the client that gets the response; undefined when it is not recorded. */
  device?(): string | undefined;
  /** Called when the session is used: from now on, the response waits until the session is saved. */
  hold?(): void;
  noteChange?(): void;
  /**
   * Lets an error that nothing catches, such as that of a callback, decide the response, like a save that fails. False
   * when the response has begun: then the caller logs the error.
   */
  fail?(error: unknown): boolean;
  readonly request?: IncomingMessage;
}

export type SessionEnd = () => Promise<unknown>;

export interface SessionCaller {
  /** Of a message, the request that opened its connection. */
  readonly request?: IncomingMessage;
  /**
   * When it began, by the monotonic clock; when it has ended every session of a principal itself, that time.
   * `principal`: the value in the index of principals.
   */
  begunAt(principal: string): number;
  /** It has just ended every session of a principal. */
  endedAll(principal: string): void;
}

export interface SessionBinding {
  readonly response?: SessionResponse | undefined;
  /** The ends of the other live sessions of the same request, which `signOut()` ends as well. */
  readonly companions?: readonly SessionEnd[] | undefined;
  /** Every change throws this error. */
  readonly refusal?: Error | undefined;
  /** The request or message itself. */
  readonly caller?: SessionCaller | undefined;
}

// Once the headers were sent, a request starts no session and changes no token: the client would not get the cookie.

/** @throws SessionStateError when the cookie of a new session can no longer be set */
export function assertStartable(response: SessionResponse | undefined): void {
  if (response?.headersSent) throw new SessionStateError(response.lateChange ?? LATE_START);
}

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

export function secondsRemembered(response: SessionResponse | undefined): number {
  if (!response) throw new SessionStateError(REMEMBERED_OUTSIDE);
  if (response.rememberedFor === undefined) throw new SessionStateError(NOT_REMEMBERED);
  return response.rememberedFor;
}

const REMEMBERED_OUTSIDE =
  'A session can be remembered only in an HTTP request, because it is the cookie that outlives the browser. Elsewhere, ' +
  'set session.maxInactiveInterval';

export const NOT_REMEMBERED = "No session can be remembered: set the option `cookie.rememberMe`, for example to '30d'";
