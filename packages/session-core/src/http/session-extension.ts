import type { IncomingMessage, ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import type { Session } from '../session/session.js';
import type { SessionRule } from '../session/session-state.js';
import type { RequestSession, RequestSessionParts } from './request-session.js';
import type { SessionTakeover } from './session-takeover.js';

/** What another package of this library adds to the requests of the application. Set it before `onModuleInit()`. */
@Injectable()
export class SessionExtension {
  /**
   * The properties of every request that has a session, instead of `session` alone, and of those that open a connection
   * to a gateway. The accessors get the request of Node.js as `this`; `requestSessionOf()` leads from there to its
   * session.
   */
  properties?: PropertyDescriptorMap | undefined;
  /** Whether another package serves a request itself, before everything of the application and without a session. */
  serves?: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined;
  /** What `@Session()` gives over an open connection, instead of the session itself. */
  shown?: ((session: RequestSession) => Session | undefined) | undefined;
  /** Whether a request has no session, although the option `exclude` does not exclude it. */
  excludes?: ((request: IncomingMessage) => boolean) | undefined;
  /** Whether the client of a request must not be sent a token. */
  withholds?: ((request: IncomingMessage) => boolean) | undefined;
  /**
   * Called before the session of a request is saved, and before its response: it may change the session. What it throws
   * decides the response, like a save that fails. A promise that it returns is waited for, and then it is called again.
   */
  beforeResponse?: ((session: RequestSession) => Promise<unknown> | undefined) | undefined;
  /** Called when all headers but those of the session are set. Must not throw. */
  beforeHeaders?: ((session: RequestSession, response: ServerResponse) => void) | undefined;
  /** Applies to every session of the application, also outside of requests. */
  rule?: SessionRule | undefined;
  listsSessions = false;
  takeover?: SessionTakeover | undefined;
  /**
   * Called when this instance learns of `endEverySession()`: what has ended is not found any more, and its events
   * follow one by one. May be called several times.
   */
  onEveryEnd?: (() => void) | undefined;
  /** Called with the request that has opened a connection, before the session of an operation on it is loaded. */
  onOperation?: ((request: IncomingMessage) => void) | undefined;
}

export interface ExtendedSessionParts extends RequestSessionParts {
  readonly extension: SessionExtension;
}
