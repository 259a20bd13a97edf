import type { IncomingMessage, ServerResponse } from 'node:http';
import { RequestSession, type FoundSession } from './request-session.js';
import { ResponseCommit, type ResponseCommitParts } from './response-commit.js';
import type { SharedResponseFunctions } from './response-functions.js';
import { ResponseHold } from './response-hold.js';
import type { SessionHolder } from './session-holder.js';

const ATTACHED = Symbol('session exchange');

/** The parts of the application that all exchanges share. */
export interface SessionExchangeParts extends ResponseCommitParts {
  readonly functions: SharedResponseFunctions;
}

/** A Node.js request, or a platform's request that wraps it as `raw`. */
interface AttachedTo {
  readonly [ATTACHED]?: SessionExchange;
  readonly raw?: object;
}

/**
 * One request, its session and its response. Of a request that presents no token, the session is made when something
 * asks for it; until then, its response passes.
 */
export class SessionExchange implements SessionHolder {
  readonly #hold: ResponseHold;
  #isSaveTaken = false;
  #opened: { readonly session: RequestSession; readonly commit: ResponseCommit } | undefined;

  constructor(
    /** The request of Node.js. */
    readonly request: IncomingMessage,
    /** The response of Node.js. */
    readonly response: ServerResponse,
    /** The parts of the application that serves the request. */
    readonly parts: SessionExchangeParts,
    found?: FoundSession,
  ) {
    this.#hold = ResponseHold.install(response, parts.functions);
    // Not enumerable, so that copying or printing a request does not lead to its session.
    Object.defineProperty(request, ATTACHED, { value: this, configurable: true });
    if (found) this.#open(found);
  }

  /** The exchange of a Node.js request, or of a platform's request. Undefined when the request is excluded. */
  static of(request: object): SessionExchange | undefined {
    const { raw = request }: AttachedTo = request;
    return (raw as AttachedTo)[ATTACHED];
  }

  /** The session of the request. */
  get session(): RequestSession {
    return (this.#opened ?? this.#open({})).session;
  }

  /** Saves the session before the response. */
  get commit(): ResponseCommit {
    return (this.#opened ?? this.#open({})).commit;
  }

  /** True for the first caller only: of several interceptors, the outermost saves. */
  takeSave(): boolean {
    const isTaken = this.#isSaveTaken;
    this.#isSaveTaken = true;
    return !isTaken;
  }

  /** `ResponseCommit.saveEarly()`, without making a session. */
  saveEarly(): Promise<void> | undefined {
    return this.#opened?.commit.saveEarly();
  }

  #open(found: FoundSession): { readonly session: RequestSession; readonly commit: ResponseCommit } {
    const session = new RequestSession(this.parts.repository, found);
    const commit = new ResponseCommit(session, this.parts, this.request, this.response);
    this.#opened = { session, commit };
    this.#hold.waitFor(commit);
    return this.#opened;
  }
}
