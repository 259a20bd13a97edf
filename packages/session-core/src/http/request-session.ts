import type { IncomingMessage } from 'node:http';
import { ConflictException, type HttpException, ServiceUnavailableException } from '@nestjs/common';
import type { DeviceCheck } from '../device/bound-devices.js';
import { type TurnVerdict, turnTextIn } from '../device/token-turns.js';
import { TURN_ATTRIBUTE } from '../session/attribute-names.js';
import { markRefusal, refusalBody } from '../errors/refusals.js';
import { AuthenticationRequiredError, SessionStoreError } from '../errors/session.errors.js';
import { lookAgain, type SessionRepository } from '../repository/session.repository.js';
import type { SessionClient, SessionIdResolver } from '../resolvers/session-id.resolver.js';
import type { SessionCaller, SessionEnd, SessionResponse } from '../session/session-response.js';
import { haveChanged, type SessionTimeouts } from '../session/session-timeouts.js';
import type { SessionToken } from '../session/session-token.js';
import type { Session } from '../session/session.js';
import { TrackedSession } from '../session/tracked-session.js';
import type { SessionTelemetry } from '../telemetry/session-telemetry.js';
import { cookieLifetimeOf, isRolling, SessionTouch } from './session-touch.js';
import type { SessionOutagePolicy } from './session-route.decorators.js';
import type { ForeignSession } from './session-takeover.js';

/** Milliseconds for which a guard may rely on what the store has replied. */
const FRESH = 1000;

export interface RequestSessionParts {
  readonly repository: SessionRepository;
  readonly telemetry?: Pick<SessionTelemetry, 'outage'> | undefined;
}

export interface FoundSession {
  /** Of several tokens, the one that opened the session; the first when none did. */
  readonly presented?: SessionToken | undefined;
  readonly presentedIds?: readonly string[];
  /** When the store was asked for them, by the monotonic clock. */
  readonly askedAt?: number;
  readonly loaded?: Session | null;
  readonly companions?: readonly SessionEnd[] | undefined;
  /** Why there is no session to use: the store could not be asked, or the tokens belong to two principals. */
  readonly loadError?: unknown;
  readonly touch?: SessionTouch;
  /** What the request presented of another library, when that decided. */
  readonly foreign?: ForeignSession | undefined;
  readonly device?: DeviceCheck | undefined;
  /** What the turn of its token shows; undefined without the option `rotateEvery`. */
  readonly turn?: TurnVerdict | undefined;
  /** The session, where it lacks the proof that it needs. */
  readonly withheld?: Session | null | undefined;
}

/** The session of one request or message: the one that its token opened, or a new one. */
export class RequestSession implements SessionCaller {
  #withheld: Session | undefined;
  /** Whether the route asks for no proof. */
  isAdmitted = false;
  #isTurnDue = false;
  #session: TrackedSession | undefined;
  #outagePolicy: SessionOutagePolicy = 'on-use';
  #isOutageReported = false;
  #isUsed = false;
  /** Those with which the session was loaded; undefined also when a change of them renews nothing. */
  #timeouts: SessionTimeouts | undefined;
  #touch: SessionTouch | undefined;
  #saving: Promise<void> | undefined;
  #hasFailed = false;
  #askedAt: number;
  #looking: Promise<boolean> | undefined;
  /** By the monotonic clock. Nothing of the application has run before. */
  readonly #begunAt = performance.now();
  #ends: Map<string, number> | undefined;

  constructor(
    protected readonly parts: RequestSessionParts,
    /** The request of Node.js; of a message, the one that opened its connection. */
    readonly request: IncomingMessage,
    readonly response: SessionResponse,
    readonly found: FoundSession,
  ) {
    this.#askedAt = found.askedAt ?? -Infinity;
    this.#touch = found.touch;
    this.#withheld = found.withheld ?? undefined;
    if (found.loaded) this.#open(found.loaded);
  }

  #open(loaded: Session): void {
    this.#session = TrackedSession.of(loaded);
    this.#session.bindTo(this.response, { companions: this.found.companions, caller: this });
    this.#timeouts = this.#session.timeouts;
  }

  /** Lets a route have the session whose proof is missing. */
  admit(): void {
    if (this.#withheld && (!this.#session || !this.#session.isDirty)) this.#open(this.#withheld);
    this.#withheld = undefined;
    this.isAdmitted = true;
  }

  /** Why the session that the request presents is not opened; undefined when it is, or somebody signs in anew. */
  get refusal(): HttpException | undefined {
    if (!this.#withheld || this.#session?.principalName !== undefined) return undefined;
    return OURS.has(this.found.device?.reason)
      ? markRefusal(new ServiceUnavailableException(refusalBody('device-proof-unreachable')))
      : new AuthenticationRequiredError('device-proof-missing');
  }

  /** The id of the session that lacks its proof, where its own user signs in anew: it must not take up a place. */
  get superseded(): string | undefined {
    const withheld = this.#withheld && TrackedSession.of(this.#withheld);
    return withheld?.storedPrincipal === this.#session?.principalName ? withheld?.id : undefined;
  }

  bringTurn(): void {
    this.#isTurnDue = true;
  }

  /** Whether the response brings the client a token, as far as can be known before the save. */
  get bringsToken(): boolean {
    const isRolled = this.#touch?.isRolling && this.#touch.isDue;
    const isRenewed = this.#timeouts !== undefined && this.#session?.timeouts !== this.#timeouts;
    return this.#isTurnDue || isRolled || isRenewed || this.#session?.id !== this.#session?.storedId;
  }

  get hasEnded(): boolean {
    const session = this.#session;
    return session?.isDeleted === true || (this.#withheld !== undefined && session?.isOver === true);
  }

  requireProof(): void {
    const { refusal } = this;
    if (refusal) throw refusal;
  }

  /** The session; if none was loaded, the first read creates one. @throws the error of a load that failed */
  get session(): Session {
    this.use();
    // Tokens of two principals are no outage.
    if (this.found.loadError !== undefined)
      this.#tellOfOutage(this.#outagePolicy !== 'anonymous' || this.hasTwoPrincipals);
    return (this.#session ??= this.#createSession());
  }

  /** The session, if it was loaded or created. Reading this does not count as using the session. */
  get existing(): TrackedSession | undefined {
    return this.#session;
  }

  get touch(): SessionTouch | undefined {
    return this.#touch;
  }

  get isUnavailable(): boolean {
    return this.found.loadError !== undefined;
  }

  get hasTwoPrincipals(): boolean {
    return this.found.loadError instanceof ConflictException;
  }

  /** Whether the response has left without the session, because the load failed. Nobody may learn that too late. */
  get isLeftWithout(): boolean {
    return this.isUnavailable && this.response.headersSent;
  }

  get shown(): Session | undefined {
    // An access log that reads the session after the response must not fail because the store failed.
    return this.found.loadError !== undefined && this.isLeftWithout ? undefined : this.session;
  }

  get isUsed(): boolean {
    return this.#isUsed;
  }

  get client(): SessionClient {
    // Who comes with a turn that is over gets no other one, whoever of the two it is.
    const present = turnTextIn(this.#session?.peekAttribute(TURN_ATTRIBUTE));
    const turn = this.found.turn === 'reused' && present !== '' ? this.found.presented?.turn : present;
    return { presented: this.found.presented, ...cookieLifetimeOf(this.#session), turn };
  }

  begunAt(principal: string): number {
    return this.#ends?.get(principal) ?? this.#begunAt;
  }

  endedAll(principal: string): void {
    (this.#ends ??= new Map()).set(principal, performance.now());
  }

  /** Records that the response depends on what the client presented. */
  use(): void {
    this.#isUsed = true;
    this.response.hold?.();
  }

  /** Sets what a failed load means for this request. @throws the error of the load when the policy is `reject` */
  applyOutagePolicy(policy: SessionOutagePolicy): void {
    this.#outagePolicy = policy;
    if (policy === 'reject' && this.isUnavailable) this.#tellOfOutage(true);
  }

  /** From now on, neither a touch nor a save of this request renews the idle timeout. */
  keepIdle(): void {
    this.#touch?.cancel();
    this.#timeouts = undefined;
    this.#session?.keepIdle();
  }

  /** Sends the client its token again with the response, if the token still opens the session then. */
  sendAgain(): void {
    const session = this.#session;
    if (session?.storedId !== undefined) this.#touch = SessionTouch.of(this.parts.repository, session, true, true);
  }

  /** Sends it again also when a timeout has changed: that renews the session, and so must a cookie with a lifetime. */
  sendAgainIfRenewed(resolver: SessionIdResolver): void {
    const loaded = this.#timeouts;
    const now = this.#session?.timeouts;
    // Most requests set none.
    if (now === loaded || !now || !loaded || (this.#touch?.isRolling && this.#touch.isDue)) return;
    if (haveChanged(now, loaded) && isRolling(resolver, this.client)) this.sendAgain();
  }

  /** Saves, and then touches the session if its token is still the presented one, so that the client gets it again. */
  async renew(): Promise<void> {
    if (this.needsSave) await this.save();
    const session = this.#session;
    if (!session?.tokenToSend && !session?.isDeleted) await this.#touch?.send();
  }

  /** That of a session created or rotated here, once it is stored; or the presented one, to renew its cookie. */
  get tokenToSend(): SessionToken | undefined {
    const { presented } = this.found;
    // A turn that another response has changed meanwhile must not be set back.
    const isRolled = this.#touch?.isRolling && this.#touch.hasRenewed && presented?.turn === this.client.turn;
    const isRenewed = this.#isTurnDue || isRolled;
    return this.#session?.tokenToSend ?? (isRenewed ? presented : undefined);
  }

  /**
   * Its changes that are not saved are lost. False, and nothing is lost, when the store has none, or this request has
   * ended it or changed its id, also in the meantime. @throws SessionStoreError when the store failed
   */
  async reload(): Promise<boolean> {
    const session = this.#session;
    if (!session || session.storedId !== session.id) return false;
    const askedAt = performance.now();
    const loaded = await this.parts.repository.findById(session.id);
    if (loaded === null || !session.replaceBy(loaded)) return false;
    this.#askedAt = askedAt;
    return true;
  }

  /**
   * Whether the session that was loaded still lives, and is still that of its principal. The store is asked when it was
   * last asked more than a second ago: a client may send a body for minutes. A rotation by another request is no end,
   * unless that has shut the former token out. Who signs in or out in this request is no copy: the save finds out.
   * @throws SessionStoreError when the store failed
   */
  isStillAlive(): true | Promise<boolean> {
    const session = this.#session;
    // The id that the store has: this request may give the session another one.
    const id = session?.storedId;
    if (!session || id === undefined) return true;
    if (performance.now() - this.#askedAt <= FRESH || session.changesPrincipal) return true;
    return (this.#looking ??= this.#lookAgain(session, id).finally(() => (this.#looking = undefined)));
  }

  async #lookAgain(session: TrackedSession, id: string): Promise<boolean> {
    const askedAt = performance.now();
    const found = await lookAgain(this.parts.repository, id, session.storedPrincipal);
    // A save of this request may have given it the other id meanwhile.
    if (found === 'gone' && session.storedId === id) return false;
    this.#askedAt = askedAt;
    return true;
  }

  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  /** Once the handler had finished, only what was set counts: encoding each object that was read would find nothing. */
  isUnsaved(isHandled: boolean): boolean {
    return isHandled ? !this.#hasFailed && this.#session?.isSet === true : this.needsSave;
  }

  get needsSave(): boolean {
    if (this.#hasFailed || !this.#session) return false;
    try {
      return this.#session.isDirty;
    } catch {
      // An object was changed in place into one that cannot be stored: the save throws that error.
      return true;
    }
  }

  /** Waits for the save before, shares its failure, and then saves what changed in the meantime. */
  save(): Promise<void> {
    const saving = this.#saving ? this.#saving.then(() => this.#save()) : this.#save();
    this.#saving = saving;
    return saving;
  }

  async #save(): Promise<void> {
    if (!this.#session) return;
    try {
      await this.#session.saveBeforeResponse();
    } catch (error) {
      this.#hasFailed = true;
      throw error;
    }
  }

  #tellOfOutage(mustBeLoaded: boolean): void {
    if (!this.#isOutageReported && this.found.loadError instanceof SessionStoreError) {
      this.#isOutageReported = true;
      this.parts.telemetry?.outage(this.#outagePolicy);
    }
    if (mustBeLoaded) throw this.found.loadError;
  }

  #createSession(): TrackedSession {
    const session = TrackedSession.of(this.parts.repository.createSession(this.found.presentedIds));
    const reason = this.isUnavailable ? refusal(this.found.loadError) : undefined;
    // Whoever signs out without a proof ends what the token opened.
    const companions = this.#withheld && this.found.companions;
    session.bindTo(this.response, { refusal: reason, caller: this, companions });
    this.#askedAt = performance.now();
    return session;
  }
}

/** A change that cannot be stored must not look as if it had been. */
function refusal(cause: unknown): SessionStoreError {
  return new SessionStoreError('The session cannot be changed, because it could not be loaded', { cause });
}

/** Why a proof is missing though the browser may be that of the session. */
const OURS: ReadonlySet<string | undefined> = new Set(['server_error', 'unreachable', 'quota_exceeded', 'unreadable']);
