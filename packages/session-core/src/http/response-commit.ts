import type { IncomingMessage, ServerResponse } from 'node:http';
import { HttpStatus } from '@nestjs/common';
import { SessionStoreError } from '../errors/session.errors.js';
import { logger } from '../logging/session.logger.js';
import { WarnOnce } from '../logging/warn-once.js';
import type { SessionRepository } from '../repository/session.repository.js';
import { appendVary, forbidStoring } from '../resolvers/response-headers.js';
import type { SessionIdResolver } from '../resolvers/session-id.resolver.js';
import type { SessionToken } from '../session/session-token.js';
import type { RequestSession } from './request-session.js';
import type { CommitGate, ErrorResponse } from './response-hold.js';
import type { StoreFailureLog } from './store-failure.log.js';

/** What a commit works with. */
export interface ResponseCommitParts {
  readonly repository: SessionRepository;
  readonly resolver: SessionIdResolver;
  readonly failures: StoreFailureLog;
}

const advice = new WarnOnce();

/**
 * Saves the session of a request before its response leaves, and puts the token on the response. The one place that
 * knows how far the headers have got.
 */
export class ResponseCommit implements CommitGate {
  readonly #headerActions: (() => void)[] = [];
  #headers: 'open' | 'begun' | 'sent' = 'open';
  #saving: Promise<void> | undefined;
  #hasFailed = false;
  #isRenewed = false;

  constructor(
    private readonly session: RequestSession,
    private readonly parts: ResponseCommitParts,
    private readonly request: IncomingMessage,
    private readonly response: ServerResponse,
  ) {
    session.bindTo(this);
  }

  /** Whether the headers have left, so that no cookie can follow. */
  get headersSent(): boolean {
    return this.#headers === 'sent';
  }

  /** Whether the application has begun to respond: only the headers themselves wait for a save from now on. */
  get hasBegun(): boolean {
    return this.#headers !== 'open';
  }

  /** Whether this request has ended its session, so that the token opens nothing any more. */
  get isSessionDeleted(): boolean {
    return this.session.existing?.isDeleted === true;
  }

  /** Whether there is anything to save. A failed save is settled: whoever heard of it decides what is answered. */
  get needsSave(): boolean {
    const { existing } = this.session;
    if (this.#hasFailed || !existing) return false;
    try {
      return existing.isDirty;
    } catch {
      // A value that was changed in place into one that cannot be stored: the save says so.
      return true;
    }
  }

  /**
   * Saves what is dirty, as often as it is called. A caller who comes while a save is under way shares its failure, and
   * finds everything saved that was changed in the meantime. After a failed save it does nothing.
   */
  save(): Promise<void> {
    const saving = (this.#saving ?? Promise.resolve()).then(() => this.#save());
    this.#saving = saving;
    const settled = () => {
      if (this.#saving === saving) this.#saving = undefined;
    };
    saving.then(settled, settled);
    return saving;
  }

  /** Adds headers when the response is about to leave. */
  onHeaders(action: () => void): void {
    this.#headerActions.push(action);
  }

  /** The headers wait for a save, and for a renewal that the client is to hear of; undefined when there is neither. */
  begin(): Promise<void> | undefined {
    if (this.#headers === 'open') this.#headers = 'begun';
    const { access } = this.session;
    if (access.isRolling && access.isDue) return this.#renew();
    // A save renews the session as well.
    if (this.needsSave) return this.save();
    void access.record();
    return undefined;
  }

  complete(): void {
    for (const action of this.#headerActions) action();
    const token = this.#tokenToSend;
    try {
      const resolved: unknown = this.#addToken(token);
      // The compiler lets the method of a resolver be `async`.
      if (resolved instanceof Promise) resolved.catch(reportResolver);
    } catch (error) {
      // What is stored is stored. An exception amid whatever sends the response could end the process.
      reportResolver(error);
    }
    // A cache that kept the response would hand out the session, or end it, once more.
    if (token || this.isSessionDeleted || this.#headerActions.length > 0) forbidStoring(this.response);
  }

  passed(): void {
    if (this.headersSent) return;
    this.#headers = 'sent';
    const { response } = this;
    // Not at the cost of the application: a pipeline() into a response alone takes most of the listeners that Node.js
    // allows before it warns of a leak. 0 stands for any number.
    const most = response.getMaxListeners();
    if (most > 0) response.setMaxListeners(most + 1);
    response.once('close', () => this.#reportUnsaved());
  }

  replace(error: unknown): ErrorResponse {
    if (error instanceof SessionStoreError) return { status: error.getStatus(), body: error.getResponse() };
    logger.error(described(error));
    const status = HttpStatus.INTERNAL_SERVER_ERROR;
    return { status, body: { statusCode: status, message: 'Internal server error' } };
  }

  /**
   * The token of a session created or rotated here, once it is stored, also when a later save has failed: no other token
   * opens the session. Or the presented token again, when the client keeps it for a limited time and it was renewed.
   */
  get #tokenToSend(): SessionToken | undefined {
    const { existing, presented } = this.session;
    return existing?.tokenToSend ?? (this.#isRenewed ? presented : undefined);
  }

  /** Returns what the resolver returned: nothing, if it is as it should be. */
  #addToken(token: SessionToken | undefined): unknown {
    const { request, response, session } = this;
    const { resolver } = this.parts;
    // A cookie that is sent again depends on the one that came, also when nobody has asked for the session.
    if (session.isUsed || token) for (const header of resolver.headers) appendVary(response, header);
    const client = { presented: session.presented, isRemembered: session.isRemembered };
    if (token) return resolver.send(request, response, token, client);
    return this.isSessionDeleted ? resolver.expire(request, response, client) : undefined;
  }

  /** Saves, and then records the access to a session whose token is still the presented one. */
  async #renew(): Promise<void> {
    if (this.needsSave) await this.save();
    if (this.#tokenToSend || this.isSessionDeleted) return;
    // Under the presented id: a session that was rotated meanwhile has another token, which the client already got.
    this.#isRenewed = (await this.session.access.record()) === 'touched';
  }

  async #save(): Promise<void> {
    const { existing } = this.session;
    if (this.#hasFailed || !existing) return;
    if (existing.signsInUnderOldToken) advice.warn('login', OLD_TOKEN);
    const { repository, failures } = this.parts;
    try {
      await repository.save(existing);
      failures.succeeded();
    } catch (error) {
      this.#hasFailed = true;
      if (error instanceof SessionStoreError) failures.failed(error);
      throw error;
    }
  }

  /** The session was changed when only `session.save()` could still store it, and nobody called it. */
  #reportUnsaved(): void {
    if (!this.needsSave) return;
    logger.warn(
      `Changes of session ${this.session.existing?.shownId} are lost: they were made after the headers were sent. ` +
        'Make them before the first byte, or call `await session.save()`',
    );
  }
}

function reportResolver(error: unknown): void {
  logger.error(`The SessionIdResolver failed, and a response leaves without what it was to add: ${described(error)}`);
}

function described(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

const OLD_TOKEN =
  'A session was given a principal under the token that it had before: whoever knew that token, or planted it in the ' +
  'browser of the victim, is signed in as well. Call session.changeSessionId() at login, and set principalName then';
