import type { IncomingMessage, ServerResponse } from 'node:http';
import { RequestSession, type FoundSession } from './request-session.js';
import { ResponseCommit, type ResponseCommitParts } from './response-commit.js';

const ATTACHED = Symbol('session exchange');

/** A request of Node.js, or one of a platform that wraps it as `raw`. */
interface AttachedTo {
  readonly [ATTACHED]?: SessionExchange;
  readonly raw?: object;
}

/** One request with its session, and the response that the session is saved before. */
export class SessionExchange {
  /** The session of the request. */
  readonly session: RequestSession;
  /** Saves the session before the response. */
  readonly commit: ResponseCommit;

  constructor(
    /** The request of Node.js. */
    readonly request: IncomingMessage,
    /** The response of Node.js. */
    readonly response: ServerResponse,
    found: FoundSession,
    parts: ResponseCommitParts,
  ) {
    this.session = new RequestSession(parts.repository, found);
    this.commit = new ResponseCommit(this.session, parts, request, response);
    Object.defineProperty(request, ATTACHED, { value: this, configurable: true });
  }

  /** The exchange of a request, or of a wrapper of it; not of a copy. Undefined when the request has no session. */
  static of(request: object): SessionExchange | undefined {
    const { raw = request }: AttachedTo = request;
    return (raw as AttachedTo)[ATTACHED];
  }
}
