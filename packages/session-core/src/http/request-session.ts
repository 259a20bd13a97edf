import { SessionStoreError } from '../errors/session.errors.js';
import type { SessionRepository } from '../repository/session.repository.js';
import type { SessionResponse } from '../session/session-response.js';
import type { SessionEnd } from '../session/unsaved-changes.js';
import type { SessionToken } from '../session/session-token.js';
import type { Session } from '../session/session.js';
import { TrackedSession } from '../session/tracked-session.js';
import type { SessionClient } from '../resolvers/session-id.resolver.js';
import { cookieLifetimeOf } from './cookie-lifetime.js';
import type { ForeignSession } from './session-takeover.js';
import { SessionTouch } from './session-touch.js';
import type { SessionOutagePolicy } from './session-route.decorators.js';

/** The result of looking up the tokens that a request presents. */
export interface FoundSession {
  /** Of several tokens, the one that opened the session; the first when none did. */
  readonly presented?: SessionToken | undefined;
  /** The ids that belong to the tokens. */
  readonly presentedIds?: readonly string[];
  /** The session that `presented` opened. */
  readonly loaded?: Session | null;
  /** The ends of the other sessions that the tokens open. */
  readonly companions?: readonly SessionEnd[] | undefined;
  /** Why there is no session to use: the store could not be asked, or the tokens belong to two principals. */
  readonly loadError?: unknown;
  /** The touch of `loaded`. */
  readonly touch?: SessionTouch;
  /** What the request presented of another library, when that decided. */
  readonly foreign?: ForeignSession | undefined;
}

/** The session of one request: the one that its token opened, or a new one. */
export class RequestSession {
  /** The token that the client presented; undefined when there was none. */
  readonly presented: SessionToken | undefined;
  /** What the request presented of another library, when that decided; `wasFound`: it led to a session. */
  readonly foreign: { readonly session: ForeignSession; readonly wasFound: boolean } | undefined;
  readonly #presentedIds: readonly string[];
  readonly #loadError: unknown;
  readonly #companions: readonly SessionEnd[] | undefined;
  #session: TrackedSession | undefined;
  #response: SessionResponse | undefined;
  #outagePolicy: SessionOutagePolicy = 'on-use';
  #isUsed = false;
  #touch: SessionTouch;

  constructor(
    private readonly repository: SessionRepository,
    { presented, presentedIds = [], loaded, companions, loadError, touch = SessionTouch.none, foreign }: FoundSession,
  ) {
    this.presented = presented;
    this.#touch = touch;
    this.foreign = foreign && { session: foreign, wasFound: Boolean(loaded) };
    this.#presentedIds = presentedIds;
    this.#loadError = loadError;
    this.#session = loaded ? TrackedSession.of(loaded) : undefined;
    this.#companions = companions;
  }

  /** The session; if none was loaded, the first read creates one. @throws the error of a load that failed */
  get session(): Session {
    this.use();
    if (this.#outagePolicy !== 'anonymous') this.#requireLoaded();
    this.#session ??= this.#createSession();
    return this.#session;
  }

  /** The session, if it was loaded or created. Reading this does not count as using the session. */
  get existing(): TrackedSession | undefined {
    return this.#session;
  }

  /** The touch that this request may owe its session. */
  get touch(): SessionTouch {
    return this.#touch;
  }

  /** Whether the load failed. */
  get isUnavailable(): boolean {
    return this.#loadError !== undefined;
  }

  /** Whether the session was used, so that the response may depend on it. */
  get isUsed(): boolean {
    return this.#isUsed;
  }

  /** The client that the response goes to. */
  get client(): SessionClient {
    return { presented: this.presented, ...cookieLifetimeOf(this.#session) };
  }

  /** Records that the response depends on what the client presented. */
  use(): void {
    this.#isUsed = true;
  }

  /** Sets what a failed load means for this request. @throws the error of the load when the policy is `reject` */
  applyOutagePolicy(policy: SessionOutagePolicy): void {
    this.#outagePolicy = policy;
    if (policy === 'reject') this.#requireLoaded();
  }

  /** From now on, neither a touch nor a save of this request renews the idle timeout. */
  keepIdle(): void {
    this.touch.cancel();
    this.#session?.keepIdle();
  }

  /** Sends the client its token again with the response, if the token still opens the session then. */
  sendAgain(): void {
    const session = this.#session;
    if (session?.storedId !== undefined) this.#touch = SessionTouch.of(this.repository, session, true, true);
  }

  /**
   * Loads the session again; its changes that are not saved are lost. False when there is none in the store.
   * @throws SessionStoreError when the store failed
   */
  async reload(): Promise<boolean> {
    const session = this.#session;
    if (session?.storedId !== session?.id) return false;
    const loaded = session && (await this.repository.findById(session.id));
    if (loaded) session.replaceBy(loaded);
    return Boolean(loaded);
  }

  /** From now on, changes that need a cookie are refused once the headers of this response were sent. */
  bindTo(response: SessionResponse): void {
    this.#response = response;
    this.#session?.bindTo(response, { companions: this.#companions });
  }

  #requireLoaded(): void {
    if (this.#loadError !== undefined) throw this.#loadError;
  }

  #createSession(): TrackedSession {
    const session = TrackedSession.of(this.repository.createSession(this.#presentedIds));
    if (this.#response)
      session.bindTo(this.#response, { refusal: this.isUnavailable ? refusal(this.#loadError) : undefined });
    return session;
  }
}

/** A change that cannot be stored must not look as if it had been. */
function refusal(cause: unknown): SessionStoreError {
  return new SessionStoreError('The session cannot be changed, because it could not be loaded', { cause });
}
