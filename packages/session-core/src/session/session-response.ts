import type { IncomingMessage } from 'node:http';

/** The response of the request that a session belongs to. */
export interface SessionResponse {
  /** Whether the headers were sent, so that no cookie can be added. */
  readonly headersSent: boolean;
  /** Whether it waits for the last save of the session, and is then sent. */
  readonly isWaiting?: boolean;
  /** Whether the client disconnected before it had the response. */
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
  /** Called at each change of the session. */
  noteChange?(): void;
  /**
   * Lets an error that nothing catches, such as that of a callback, decide the response, like a save that fails. False
   * when the response has begun: then the caller logs the error.
   */
  fail?(error: unknown): boolean;
  /** The request of Node.js. */
  readonly request?: IncomingMessage;
}
