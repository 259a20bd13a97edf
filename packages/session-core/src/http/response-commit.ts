import type { IncomingMessage, ServerResponse } from 'node:http';
import { HttpException, HttpStatus } from '@nestjs/common';
import { logger } from '../logging/session.logger.js';
import { signOutById } from '../repository/session.repository.js';
import type { SessionIdResolver } from '../resolvers/session-id.resolver.js';
import type { SessionResponse } from '../session/session-response.js';
import { shownStack } from '../logging/shown-error.js';
import { appendVary, forbidStoring } from '../resolvers/response-headers.js';
import type { SessionToken } from '../session/session-token.js';
import type { BoundDevices } from '../device/bound-devices.js';
import type { RotatingTokens } from '../device/rotating-tokens.js';
import { LateChanges } from './late-changes.js';
import { type FoundSession, RequestSession } from './request-session.js';
import type { ExtendedSessionParts } from './session-extension.js';
import {
  type CommitGate,
  type ErrorResponse,
  isDestroyed,
  ResponseHold,
  type ResponseFunctionsReplacer,
} from './response-hold.js';
import { VisitorToken } from './visitor-token.js';

const ATTACHED = Symbol('response commit');

interface AttachedTo {
  readonly [ATTACHED]?: ResponseCommit;
  readonly raw?: unknown;
}

export interface ResponseCommitParts extends ExtendedSessionParts {
  readonly resolver: SessionIdResolver;
  readonly replaceIn: ResponseFunctionsReplacer;
  /** Rejects when the application refuses a new session for a request; undefined: it refuses none. */
  readonly mayCreate?: ((request: IncomingMessage) => Promise<void>) | undefined;
  readonly devices?: BoundDevices | undefined;
  readonly tokens?: RotatingTokens | undefined;
  readonly deviceOf?: ((request: IncomingMessage) => string) | undefined;
}

/**
 * Saves the session of a request before its response is sent, and adds the token. A failed save is not tried again.
 * Where SessionInterceptor calls `saveEarly()`, the error reaches the exception filters. Elsewhere ResponseHold calls
 * `begin()`, and sends what `replace()` returns instead of the response.
 */
export abstract class ResponseCommit implements CommitGate, SessionResponse {
  readonly session: RequestSession;
  isGuarded = false;
  readonly #hold: ResponseHold;
  #isHeld = false;
  #headerActions: (() => void)[] | undefined;
  #passedActions: (() => unknown)[] | undefined;
  #visitor: VisitorToken | undefined;
  #headers: 'open' | 'begun' | 'sent' = 'open';
  #isWaiting = false;
  #isHandled = false;
  #isSaveTaken = false;
  /** Whether the session was changed while the response waited. */
  #isChangedLate = false;
  #isOver = false;
  #late: LateChanges | undefined;
  /** The error of `fail()`, and whether it has decided the response. */
  #failure: { readonly error: unknown; isTold: boolean } | undefined;
  /** Whether `saveEarly()` waits, and then takes that error to the exception filters. */
  #isWaitingEarly = false;

  /** Without `found`, because the request presents no token, its response passes until something uses the session. */
  constructor(
    readonly request: IncomingMessage,
    readonly response: ServerResponse,
    readonly parts: ResponseCommitParts,
    found?: FoundSession,
  ) {
    this.#hold = new ResponseHold(response, parts.replaceIn);
    this.session = new RequestSession(parts, request, this, found ?? NOTHING);
    // Not enumerable, so that copying or printing a request does not lead to its session.
    Object.defineProperty(request, ATTACHED, { value: this, configurable: true });
    if (found) this.hold();
  }

  /** Undefined when the request is excluded. */
  static of(request: object): ResponseCommit | undefined {
    const { [ATTACHED]: attached, raw }: AttachedTo = request;
    // On Express, `raw` is whatever the application keeps there.
    return attached ?? (raw as AttachedTo | null | undefined)?.[ATTACHED];
  }

  hold(): void {
    if (this.#isHeld) return;
    this.#isHeld = true;
    this.#hold.waitFor(this);
  }

  get headersSent(): boolean {
    return this.#headers === 'sent';
  }

  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  get isAborted(): boolean {
    return isDestroyed(this.response) && !this.response.writableEnded;
  }

  /** Whether the application has responded, and the last byte has left. */
  get isAnswered(): boolean {
    return isDestroyed(this.response) && this.response.writableEnded;
  }

  get rememberedFor(): number | undefined {
    return this.parts.resolver.maxAge({ isRemembered: true });
  }

  get mayCreate(): (() => Promise<void>) | undefined {
    const { mayCreate } = this.parts;
    const { refusal } = this.session;
    if (refusal) return () => Promise.reject(refusal);
    const { superseded } = this.session;
    if (superseded === undefined) return mayCreate && (() => mayCreate(this.request));
    return async () => {
      await mayCreate?.(this.request);
      await signOutById(this.parts.repository, superseded);
    };
  }

  device(): string | undefined {
    return this.parts.deviceOf?.(this.request);
  }

  /** The CSRF token of a browser without a session. */
  get visitor(): VisitorToken {
    return (this.#visitor ??= new VisitorToken(this, this.parts.resolver));
  }

  get visitorToken(): string | undefined {
    return this.visitor.known?.toString('base64url');
  }

  noteChange(): void {
    if (this.headersSent) this.#lateChanges.note();
    else this.#isChangedLate ||= this.hasBegun;
  }

  /** Whether the application has begun to respond. From then on, only `begin()` waits for a save. */
  get hasBegun(): boolean {
    return this.#headers !== 'open';
  }

  /** True for the first caller only: of several interceptors, the outermost saves. */
  takeSave(): boolean {
    const isTaken = this.#isSaveTaken;
    this.#isSaveTaken = true;
    return !isTaken;
  }

  /**
   * Call it when the handler has finished; undefined when there is nothing to save. Resolves, although the save failed,
   * when the response began in the meantime: that waits for the same save and reports the failure.
   */
  saveEarly(): Promise<void> | undefined {
    if (this.#headers !== 'open') return undefined;
    this.#isHandled = true;
    const { session } = this;
    const prepared = this.#prepare();
    if (!prepared && !session.needsSave) {
      session.existing?.rest();
      return undefined;
    }
    this.#isWaitingEarly = prepared !== undefined;
    return (prepared ? prepared.then(() => this.saveEarly()) : session.save()).catch((error: unknown) => {
      if (!this.hasBegun) throw error;
    });
  }

  fail(error: unknown): boolean {
    if (this.hasBegun || this.#failure) return false;
    this.#failure = { error, isTold: false };
    // Where the handler has not finished, or has the response to itself, nobody else would take it to the client.
    setImmediate(() => {
      if (!this.#failure?.isTold && !this.#isWaitingEarly && !this.hasBegun) this.response.end();
    });
    return true;
  }

  protected abstract saveSession(): Promise<void> | undefined;

  protected abstract addHeaders(): void;

  /** Sends the client a token; without one, and when the session was deleted, makes it forget the one that it has. */
  protected sendToken(token: SessionToken | undefined, isDeleted: boolean): void {
    const { request, response, session } = this;
    const { resolver, extension } = this.parts;
    const { foreign, loaded } = session.found;
    let resolved: unknown;
    try {
      // A cookie that is sent again depends on the presented one, even when the session was not used.
      if (session.isUsed || token) for (const header of resolver.headers) appendVary(response, header);
      if (token && extension.withholds?.(request)) return;
      // Not where the token of this library could not be sent: the client would have none.
      if (foreign && (token || isDeleted || !loaded)) {
        foreign.expire(response);
        forbidStoring(response);
      }
      if (token) resolved = resolver.send(request, response, token, session.client);
      else if (isDeleted) resolved = resolver.expire(request, response, session.client);
    } catch (error) {
      // The session is stored by now, and an exception in the middle of sending the response could end the process.
      reportResolver(error);
    }
    // The compiler lets the method of a resolver be `async`.
    if (resolved instanceof Promise) resolved.catch(reportResolver);
  }

  onHeaders(action: () => void): void {
    (this.#headerActions ??= []).push(action);
  }

  onPassed(action: () => unknown): void {
    (this.#passedActions ??= []).push(action);
  }

  begin(): Promise<void> | undefined {
    if (this.#headers === 'open') this.#headers = 'begun';
    const work = this.#finish();
    this.#isWaiting = work !== undefined;
    return work;
  }

  complete(): void {
    this.#headerActions?.forEach((action) => action());
    this.parts.extension.beforeHeaders?.(this.session, this.response);
    this.addHeaders();
    // A cookie that an action has set is not for others either.
    if (this.#headerActions) forbidStoring(this.response);
  }

  passed(): void {
    if (this.#headers === 'sent') return;
    this.#headers = 'sent';
    this.#passedActions?.forEach((action) => action());
    if (this.#isChangedLate) this.#lateChanges.note();
    this.whenClosed(() => {
      this.#isOver = true;
      const isUnsaved = () => this.session.isUnsaved(this.#isHandled);
      if (this.#late || isUnsaved()) void this.#lateChanges.close(isUnsaved);
    });
  }

  /** Made for the first change after the headers: most responses have none. */
  get #lateChanges(): LateChanges {
    return (this.#late ??= new LateChanges(this.session, this.#isOver));
  }

  whenClosed(listener: () => void): void {
    const { response } = this;
    // Node.js warns of more than ten listeners, and a pipeline() into a response takes most of them: ours comes on top.
    // 0 means no limit.
    const most = response.getMaxListeners();
    if (most > 0) response.setMaxListeners(most + 1);
    // `on`, because the event occurs once.
    response.on('close', listener);
  }

  replace(error: unknown): ErrorResponse {
    const response = error instanceof HttpException ? responseOf(error) : undefined;
    if (response) return response;
    if (this.session.hasFailed)
      logger.error('The session could not be saved, so the response is a 500', shownStack(error));
    else if (this.#failure?.error === error)
      logger.error('A callback of the session threw an error, so the response is a 500', shownStack(error));
    else logger.error('Node.js refused to send a response, so the response is a 500', shownStack(error));
    const status = HttpStatus.INTERNAL_SERVER_ERROR;
    return { status, json: JSON.stringify({ statusCode: status, message: 'Internal server error' }) };
  }

  /** What is to be done before the response: when it resolves, there may be more of it. Rejects as a save does. */
  #prepare(): Promise<unknown> | undefined {
    this.#isWaitingEarly = false;
    try {
      if (this.#failure && !this.#failure.isTold) {
        this.#failure.isTold = true;
        throw this.#failure.error;
      }
      const { devices, tokens, extension } = this.parts;
      const changed = devices?.beforeResponse(this) ?? tokens?.beforeResponse(this);
      return changed ?? extension.beforeResponse?.(this.session);
    } catch (error) {
      return Promise.reject(error as Error);
    }
  }

  #finish(): Promise<void> | undefined {
    const prepared = this.#prepare();
    if (prepared) return prepared.then(() => this.#finish());
    return this.saveSession();
  }
}

const NOTHING: FoundSession = {};

/** Undefined for an error that cannot be sent: what it throws here would end the process. */
function responseOf(error: HttpException): ErrorResponse | undefined {
  try {
    const [status, response] = [error.getStatus(), error.getResponse()];
    const body = typeof response === 'string' ? { statusCode: status, message: response } : response;
    const json = JSON.stringify(body) as string | undefined;
    return json !== undefined && isStatus(status) ? { status, json } : undefined;
  } catch {
    return undefined;
  }
}

function reportResolver(error: unknown): void {
  logger.error('The SessionIdResolver failed, so a response is sent without its headers', shownStack(error));
}

function isStatus(status: unknown): boolean {
  return Number.isInteger(status) && Number(status) >= 200 && Number(status) <= 999;
}
