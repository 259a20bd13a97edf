import type { IncomingMessage, ServerResponse } from 'node:http';
import { Logger } from '@nestjs/common';
import type { SessionRepository, TouchReply } from '../repository/session.repository.js';
import { SessionStoreError } from '../session.errors.js';
import type { Session } from '../session/session.js';
import type { SessionToken } from '../session/session-key.js';
import type { SessionIds } from '../session/session-ids.js';
import { TrackedSession } from '../session/tracked-session.js';
import { OnceLog } from './once.log.js';
import { REMEMBER_ME_ATTRIBUTE } from './remember-me.js';
import type { StoreFailureLog } from './store-failure.log.js';

export interface SessionRequestInit {
  readonly request: IncomingMessage;
  readonly repository: SessionRepository;
  readonly ids: SessionIds;
  readonly failures: StoreFailureLog;
  /** The token that the request presented: of several, the one that opened the session, or the first when none did. */
  readonly presented?: SessionToken | undefined;
  /** The ids of the sessions that its tokens open, if there are any. */
  readonly presentedIds?: readonly string[];
  /** What that token opened. */
  readonly loaded?: Session | null;
  /** Why nobody knows what it opens. */
  readonly loadError?: unknown;
  /** Records the access; given when that is due. Never rejects. */
  readonly touch?: (() => Promise<TouchOutcome>) | undefined;
  /** Whether what the client keeps has an end, and is to be sent again with every renewal. */
  readonly isRolling?: boolean;
}

/** What has become of the record of an access. */
export type TouchOutcome = TouchReply | 'failed';

const logger = new Logger('Session');
const advice = new OnceLog();
const ATTACHED = Symbol('session request');

/** A request of Node.js, or one of a platform that wraps it as `raw`. */
interface AttachedTo {
  readonly [ATTACHED]?: SessionRequest;
  readonly raw?: object;
}

/** What one request knows about its session, from before the first middleware until its head has left. */
export class SessionRequest {
  readonly request: IncomingMessage;
  /** The token that the request presented; see `SessionIdResolver.send()`. */
  readonly presented: SessionToken | undefined;
  readonly #headActions: ((response: ServerResponse) => void)[] = [];
  readonly #repository: SessionRepository;
  readonly #ids: SessionIds;
  readonly #presentedIds: readonly string[];
  readonly #failures: StoreFailureLog;
  readonly #loadError: unknown;
  #session: TrackedSession | undefined;
  #isUsed = false;
  #isOptional = false;
  #hasFailed = false;
  #head: 'none' | 'started' | 'sent' = 'none';
  #commit: Promise<void> | undefined;
  #dueTouch: (() => Promise<TouchOutcome>) | undefined;
  #touch: Promise<TouchOutcome> | undefined;
  readonly #isRolling: boolean;
  #isRenewed = false;

  constructor(init: SessionRequestInit) {
    this.request = init.request;
    this.#repository = init.repository;
    this.#ids = init.ids;
    this.#presentedIds = init.presentedIds ?? [];
    this.#failures = init.failures;
    this.presented = init.presented;
    this.#loadError = init.loadError;
    this.#dueTouch = init.touch;
    this.#isRolling = init.isRolling ?? false;
    this.#session = init.loaded ? TrackedSession.of(init.loaded) : undefined;
  }

  /** What was attached to a request; undefined when it has no session. */
  static of(request: object): SessionRequest | undefined {
    const { raw = request }: AttachedTo = request;
    return (raw as AttachedTo)[ATTACHED];
  }

  /** From now on `of(request)` finds this, and so do wrappers of the request; copies do not. */
  attachTo(request: object): void {
    Object.defineProperty(request, ATTACHED, { value: this, configurable: true });
  }

  /** The loaded session, or a new one, made when it is first asked for. @throws what kept the session from being loaded */
  get session(): Session {
    this.#isUsed = true;
    if (!this.#isOptional) this.requireSession();
    this.#session ??= this.#createSession();
    return this.#session;
  }

  /** @throws what kept the session from being loaded */
  requireSession(): void {
    if (this.#loadError !== undefined) throw this.#loadError;
  }

  /** Does without a session that could not be loaded: `session` is an empty one then, which takes no changes. */
  makeOptional(): void {
    this.#isOptional = true;
  }

  /** Whether the store failed to say which session this is. */
  get isUnavailable(): boolean {
    return this.#loadError !== undefined;
  }

  /** The answer depends on what the client has brought, whoever asks for the session. */
  use(): void {
    this.#isUsed = true;
  }

  /** Whether anybody has asked for the session, so that the answer may depend on it. */
  get isUsed(): boolean {
    return this.#isUsed;
  }

  /** Leaves the session as idle as it is: the access is not recorded, and no save of this request renews it. */
  keepIdle(): void {
    this.#dueTouch = undefined;
    this.#session?.keepIdle();
  }

  /**
   * Records the access if that is due, once. Resolves to what has become of that; undefined when it was not due, or waits
   * for the head: a token that is sent again must be the one of just then, and not what it was before a login.
   */
  recordAccess(): Promise<TouchOutcome> | undefined {
    if (this.#isRolling && !this.isHeadStarted) return undefined;
    this.#touch ??= this.#dueTouch?.();
    return this.#touch;
  }

  /** Whether there is anything to save. A failed save is settled: whoever heard of it decides what is answered. */
  get needsCommit(): boolean {
    if (this.#hasFailed || !this.#session) return false;
    try {
      return this.#session.isDirty;
    } catch {
      // A value that was changed in place into one that cannot be stored: the save says so.
      return true;
    }
  }

  /**
   * Saves what is dirty, as often as it is asked to. Who asks while a save is under way shares its failure, and has
   * saved afterwards what was changed in the meantime. After a failed save it does nothing.
   */
  commit(): Promise<void> {
    const commit = (this.#commit ?? Promise.resolve()).then(() => this.#save());
    this.#commit = commit;
    const settled = () => {
      if (this.#commit === commit) this.#commit = undefined;
    };
    commit.then(settled, settled);
    return commit;
  }

  /**
   * The token for the client: that of a session created or rotated here, once it is stored, also when a later save has
   * failed, since no other opens the session any more; or the one that it has presented, again, when what it keeps has an
   * end and was renewed.
   */
  get tokenToSend(): SessionToken | undefined {
    return this.#session?.tokenToSend ?? (this.#isRenewed ? this.presented : undefined);
  }

  /** Whether its cookie is to outlive the browser: see `RememberMe`. */
  get isRemembered(): boolean {
    return this.#session?.getAttribute(REMEMBER_ME_ATTRIBUTE) === true;
  }

  /** Whether this request has ended the session, so that its token opens nothing any more. */
  get isSessionDeleted(): boolean {
    return this.#session?.isDeleted === true;
  }

  /** Whether the application has begun to answer: nothing but the head itself waits for a save any more. */
  get isHeadStarted(): boolean {
    return this.#head !== 'none';
  }

  /** What the head has to wait for: a save, and a renewal that the client is to hear of; undefined when there is neither. */
  startHead(): Promise<void> | undefined {
    this.#head = 'started';
    if (this.#isRolling && this.#dueTouch) return this.#renew();
    // Renews the session as well.
    if (this.needsCommit) return this.commit();
    void this.recordAccess();
    return undefined;
  }

  /** Has headers added when the head is about to leave. */
  onHead(action: (response: ServerResponse) => void): void {
    this.#headActions.push(action);
  }

  /** Adds the headers that others wanted to. Returns whether there were any. */
  addHeaders(response: ServerResponse): boolean {
    for (const action of this.#headActions) action(response);
    return this.#headActions.length > 0;
  }

  get isHeadSent(): boolean {
    return this.#head === 'sent';
  }

  /** Says in the log that the session was changed when only `session.save()` could still store it, and nobody did. */
  reportUnsaved(): void {
    if (!this.needsCommit || !this.#session) return;
    logger.warn(
      `Changes of session ${this.#ids.shown(this.#session.id)} are lost: they were made after the head of the response had been sent. ` +
        'Make them before the first byte, or call `await session.save()`',
    );
  }

  /** The head has left, and no cookie can follow. */
  closeHead(): void {
    this.#head = 'sent';
    this.#session?.closeHead();
  }

  /** Saves, and then records the access of a session that is still the one whose token was presented. */
  async #renew(): Promise<void> {
    if (this.needsCommit) await this.commit();
    if (this.tokenToSend || this.isSessionDeleted) return;
    // Under the id that was presented: what was moved meanwhile has another token, which the client has got already.
    this.#isRenewed = (await this.recordAccess()) === 'touched';
  }

  async #save(): Promise<void> {
    if (this.#hasFailed || !this.#session) return;
    if (this.#session.signsInUnderOldToken) advice.warn('login', OLD_TOKEN);
    try {
      await this.#repository.save(this.#session);
      this.#failures.succeeded();
    } catch (error) {
      this.#hasFailed = true;
      if (error instanceof SessionStoreError) this.#failures.failed(error);
      throw error;
    }
  }

  #createSession(): TrackedSession {
    const session = TrackedSession.of(this.#repository.createSession(this.#presentedIds));
    if (this.#head === 'sent') session.closeHead();
    if (this.isUnavailable) session.refuseChanges(refusal(this.#loadError));
    return session;
  }
}

const OLD_TOKEN =
  'A session was given a principal under the token that it had before: whoever knew that one, or planted it in the browser ' +
  'of the victim, is signed in as well. A login calls session.changeSessionId() first, and sets principalName then';

/** A change that nobody could store must not look as if it had been. */
function refusal(cause: unknown): SessionStoreError {
  return new SessionStoreError('The session takes no changes, because it could not be loaded', { cause });
}
