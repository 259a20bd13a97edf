import type { IncomingMessage, ServerResponse } from 'node:http';
import { RequestSession, type FoundSession } from './request-session.js';
import { ResponseCommit, type ResponseCommitParts } from './response-commit.js';

const ATTACHED = Symbol('session exchange');

/** A Node.js request, or a platform's request that wraps it as `raw`. */
interface AttachedTo {
  readonly [ATTACHED]?: SessionExchange;
  readonly raw?: object;
}

/** One request, its session and its response. */
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

  /** The exchange of a Node.js request, or of a platform's request. Undefined when the request is excluded. */
  static of(request: object): SessionExchange | undefined {
    const { raw = request }: AttachedTo = request;
    return (raw as AttachedTo)[ATTACHED];
  }
}
