import { SessionGoneError, SessionStateError } from '../errors/session.errors.js';
import type { SecurityEventKind } from '../security-events/security-event.js';
import type { SecurityReport } from '../security-events/security.events.js';
import {
  PRINCIPAL_ATTRIBUTE,
  REMEMBER_ME_ATTRIBUTE,
  isKept,
  type KeptAttributes,
  keptAttributes,
} from './attribute-names.js';
import { type AttributesSession, type StoredAttributes, TrackedAttributes } from './tracked-attributes.js';
import { NOT_SIGNED_IN, NOT_STARTED_ANEW } from './gone-reasons.js';
import { assertRotatable, assertStartable, secondsRemembered, type SessionResponse } from './session-response.js';
import type { SessionBounds } from './session-bounds.js';
import type { CreateSession, UpdateSession, SessionDeletedReason } from './session-change.js';
import { endsNow, haveChanged, secondsOf, type SessionTimeouts } from './session-timeouts.js';
import type { SessionToken } from './session-token.js';
import type { SessionWriter } from './session-writer.js';
import type { StoredSession } from './stored-session.js';

/** Ends a session in the store. */
export type SessionEnd = () => Promise<unknown>;

/** The request or message that a session is of. */
export interface SessionCaller {
  /**
   * When it began, by the monotonic clock; when it has ended every session of a principal itself, that time.
   * `principal`: the value in the index of principals.
   */
  begunAt(principal: string): number;
  /** It has just ended every session of a principal. */
  endedAll(principal: string): void;
}

/** What a request knows of its session. */
export type SessionBinding = Partial<Pick<UnsavedChanges, 'companions' | 'refusal' | 'caller'>>;

/** A sign-in that is not saved, or the end of one. */
interface Authentication {
  /** The attributes that a sign-in keeps; undefined: nobody is signed in any more. */
  readonly kept: KeptAttributes | undefined;
  /** When somebody signed in. */
  readonly at: number | undefined;
}

/** What is known only of a session that was created here. */
export interface CreatedSession {
  readonly token: SessionToken;
  /** The ids that the client presented and that opened nothing. */
  readonly presentedIds: readonly string[];
}

const SIGNED_OUT: Authentication = { kept: undefined, at: undefined };

/** What the application has changed in a session, and the store does not have yet. */
export class UnsavedChanges implements AttributesSession {
  /** The id that the session has after the next save. */
  id: string;
  /** Known only for a session that was created or rotated here: the store has only the id. */
  token: SessionToken | undefined;
  readonly attributes = new TrackedAttributes(this);
  timeouts: SessionTimeouts;
  isInvalidated = false;
  /** Why the session is deleted, once it is invalidated. */
  reason: SessionDeletedReason = 'invalidated';
  /** Whether saves do not renew the idle timeout. */
  keepsIdle = false;
  /** Until then, by the monotonic clock, a save of attributes need not renew the idle timeout either. */
  isFreshUntil = -Infinity;
  /** The response of the request on whose behalf the session changes. */
  response: SessionResponse | undefined;
  /** The ends of the other live sessions of the same request, which `signOut()` ends as well. */
  companions: readonly SessionEnd[] | undefined;
  /** On whose behalf it changes; undefined outside of requests. */
  caller: SessionCaller | undefined;
  /** Every change throws this error. */
  refusal: Error | undefined;
  /** The ends of other sessions, which come first: so a request that failed in between can be repeated. */
  beforeEnd: readonly SessionEnd[] | undefined;
  /** Runs before each save. */
  beforeSave: (() => void) | undefined;
  /** Whether it runs before a save that the response waits for, so that its headers take another token. */
  isBeforeResponse = false;
  presentedIds: readonly string[];
  authentication: Authentication | undefined;
  /** Whether the next save removes all attributes that the store has. */
  clears = false;
  /** Whether the next rotation leads no change of the former id on. */
  closes = false;
  /** The sign-in, or the end of one, that the last save was made of. */
  #written: Authentication | undefined;

  constructor(
    private readonly stored: StoredSession,
    private readonly writer: SessionWriter,
    id: string,
    created?: CreatedSession,
  ) {
    this.id = id;
    this.token = created?.token;
    this.presentedIds = created?.presentedIds ?? [];
    this.timeouts = stored.timeouts;
  }

  get storedAttributes(): StoredAttributes {
    return this.stored.attributes;
  }

  get bounds(): SessionBounds {
    const { bounds, visitorBounds } = this.writer;
    return visitorBounds && this.attributes.peek(PRINCIPAL_ATTRIBUTE) === undefined ? visitorBounds : bounds;
  }

  /** Reports that a bound, or the limit of another option, refuses a change. */
  reached(limit: string): void {
    const name = this.attributes.peek(PRINCIPAL_ATTRIBUTE);
    const principalName = typeof name === 'string' ? name : undefined;
    this.report('limit-reached', { limit, sessionId: this.stored.id, principalName });
  }

  /** Reports a security event, with the request on whose behalf the session changes, if there is one. */
  report(kind: SecurityEventKind, report: SecurityReport): void {
    this.writer.securityEvents?.report(kind, { request: this.response?.request, ...report });
  }

  /** Since when somebody is signed in. */
  get authenticatedAt(): number | undefined {
    return this.authentication ? this.authentication.at : this.stored.authenticatedAt;
  }

  /** Whether somebody has signed in since the last save. */
  get signsIn(): boolean {
    return this.authentication?.kept !== undefined;
  }

  /** Why a session that is found gone signs nobody in, or is not started anew: the next save says so. */
  get failureToStart(): string | undefined {
    if (this.stored.ended !== 'gone' || this.isInvalidated) return undefined;
    if (this.signsIn) return NOT_SIGNED_IN;
    return this.clears && this.attributes.hasSet ? NOT_STARTED_ANEW : undefined;
  }

  /**
   * Whether what should have become of a session that another request has rotated is saved as a session of its own. Not
   * for who was signed in: the session may be all that shows who they are, and has been taken from them.
   */
  get mayBeginAnew(): boolean {
    return this.failureToStart !== undefined && this.stored.isRotated && !(this.#hasUser && this.stored.hadUser);
  }

  get #hasUser(): boolean {
    return this.signsIn || this.attributes.peek(PRINCIPAL_ATTRIBUTE) !== undefined;
  }

  /** The next save creates a session of its own, with what it keeps. */
  beginAnew(): void {
    this.presentedIds = [this.stored.id!];
    this.stored.beginAnew();
  }

  get isNew(): boolean {
    return this.stored.id === undefined;
  }

  /** Whether this object ended the session, or will end it at the save. */
  get isOver(): boolean {
    return this.isInvalidated || this.stored.ended === 'deleted';
  }

  /** @throws SessionStateError when the session was ended in this request */
  assertWritable(): void {
    this.#assertAllowed();
    if (this.isOver) throw new SessionStateError(OVER);
  }

  /** For a change that starts a new session. @throws SessionStateError when its cookie can no longer be set */
  assertStartable(): void {
    this.assertWritable();
    if (this.isNew) assertStartable(this.response);
  }

  /** For a change of the token. @throws SessionStateError when the client would not get it */
  assertRotatable(): void {
    this.assertWritable();
    assertRotatable(this.response);
  }

  /** Seconds to remember a sign-in that does not say: of the user whose session is remembered, and of no other one. */
  #keptFor(name: string, remember: boolean | undefined): number | undefined {
    const stays = remember === undefined && this.attributes.peek(PRINCIPAL_ATTRIBUTE) === name;
    return stays && this.attributes.peek(REMEMBER_ME_ATTRIBUTE) === true ? this.response?.rememberedFor : undefined;
  }

  /** Whether there is anything to save. */
  get isDirty(): boolean {
    // What was set comes first, because it needs no encoding.
    return this.isSet || (!this.stored.ended && !this.isNeverStored && this.attributes.hasChangedInPlace);
  }

  /** Whether there is anything to save, apart from objects that were changed in place. */
  get isSet(): boolean {
    const { stored } = this;
    if (this.beforeEnd || this.failureToStart !== undefined || this.endsRotated) return true;
    if (stored.ended || this.isNeverStored) return false;
    if (this.isInvalidated || this.attributes.hasSet) return true;
    return !this.isNew && (this.id !== stored.id || this.hasTimeouts);
  }

  /** Whether the application ends a session that another request has rotated, and that this object found gone. */
  get endsRotated(): boolean {
    if (this.isNeverStored) return this.presentedIds.length > 0;
    return this.isInvalidated && this.stored.isRotated;
  }

  /** Whether the session is new and ends at once. */
  get isNeverStored(): boolean {
    return this.isNew && (this.isInvalidated || endsNow(this.timeouts));
  }

  /** Whether the store has, or may have, other timeouts. */
  get hasTimeouts(): boolean {
    const { knownTimeouts } = this.stored;
    return this.timeouts !== knownTimeouts && haveChanged(this.timeouts, knownTimeouts);
  }

  /**
   * @throws RangeError for anything but whole seconds, a duration of whole seconds, or `'never'`, and for an absolute
   *   timeout that is longer than strict mode allows
   */
  setTimeout(name: keyof SessionTimeouts, timeout: number | string): void {
    this.assertWritable();
    const seconds = secondsOf(name, timeout);
    const { longestAbsoluteTimeout: longest = Infinity } = this.writer;
    if (name === 'absoluteTimeout' && (seconds < 0 ? Infinity : seconds) > longest) {
      throw new RangeError(`absoluteTimeout must be at most ${longest} seconds with \`security: 'strict'\``);
    }
    this.timeouts = { ...this.timeouts, [name]: seconds };
  }

  /** Removes all attributes. The session must be rotated as well. */
  clear(): void {
    this.attributes.leave(() => true);
    this.clears = true;
    // Of a visitor, it may be the login of an application that names no principal.
    if (this.stored.hadUser || this.authenticatedAt !== undefined) this.signOut();
    else this.authentication = undefined;
  }

  /**
   * Signs a principal in. `remember` unset: a user who signs in again stays remembered. Only the attributes of `keep`
   * stay; unset: all of a visitor, or of the same principal, but those bound to the visitor, and none of another
   * principal. The session must be rotated as well.
   */
  signIn(name: string, remember: boolean | undefined, keep: readonly string[] | undefined): void {
    const rememberedFor = remember ? secondsRemembered(this.response) : this.#keptFor(name, remember);
    if (this.stored.ended === 'gone' && !(this.stored.isRotated && !this.stored.hadUser)) {
      throw new SessionGoneError(NOT_SIGNED_IN);
    }
    const { visitorAttributes, timeouts } = this.writer;
    // First, because nothing may have changed when the name is too long, or a resolver gives no whole seconds.
    const maxInactiveInterval = secondsOf('maxInactiveInterval', rememberedFor ?? timeouts.maxInactiveInterval);
    this.attributes.encode(PRINCIPAL_ATTRIBUTE, name);
    const kept = keptAttributes(keep ?? (this.#isOfAnother(name) ? [] : undefined), visitorAttributes);
    this.authentication = { kept, at: Date.now() };
    this.attributes.leave((each) => !isKept(each, kept));
    this.attributes.set(PRINCIPAL_ATTRIBUTE, name);
    if (rememberedFor !== undefined) this.attributes.set(REMEMBER_ME_ATTRIBUTE, true);
    this.timeouts = { maxInactiveInterval, absoluteTimeout: timeouts.absoluteTimeout };
  }

  /** Whether the session is, or was before the changes of this request, that of another principal. */
  #isOfAnother(name: string): boolean {
    const names = [this.attributes, this.stored.attributes].map((each) => each.peek(PRINCIPAL_ATTRIBUTE));
    return names.some((each) => each !== undefined && each !== name);
  }

  /**
   * Sets or removes the principal. The idle timeout of visitors becomes that of users, or the other way round.
   * `isAnother`: nobody has shown to be the new one, unless it is the name of who has just signed in.
   */
  setPrincipal(name: string | undefined, isAnother = false): void {
    this.assertStartable();
    const { timeouts, anonymousTimeout } = this.writer;
    const hadOne = this.attributes.peek(PRINCIPAL_ATTRIBUTE) !== undefined;
    this.attributes.set(PRINCIPAL_ATTRIBUTE, name);
    if (!hadOne && name !== undefined) this.#exchangeTimeout(anonymousTimeout, timeouts.maxInactiveInterval);
    if (hadOne && name === undefined) this.#exchangeTimeout(timeouts.maxInactiveInterval, anonymousTimeout);
    if (name === undefined || (isAnother && !this.signsIn)) this.signOut();
  }

  /** Nobody is signed in any more, as far as a sign-in has said so. */
  signOut(): void {
    this.authentication = SIGNED_OUT;
  }

  /** Ends the session at the next save, and with `signed-out` its companions as well. */
  invalidate(reason?: 'signed-out'): void {
    this.#assertAllowed();
    this.isInvalidated = true;
    if (reason) [this.reason, this.beforeEnd] = [reason, this.companions];
  }

  /** Forgets the changes, but for a rotation. */
  discard(): void {
    this.attributes.discard();
    this.timeouts = this.stored.timeouts;
    this.authentication = this.clears && this.stored.hadUser ? SIGNED_OUT : undefined;
    if (!this.clears) this.stored.attributes.stay();
  }

  /** Forgets all changes, because the session was loaded again. */
  reset(): void {
    this.attributes.discard();
    this.timeouts = this.stored.timeouts;
    this.authentication = undefined;
  }

  /** The attributes to write. The next call of `saved()` is about these, and about the sign-in that there is now. */
  takeAttributes(): Map<string, string | null> {
    this.#written = this.authentication;
    const changes = this.attributes.changes();
    // Only a session that begins anew holds any.
    const held = this.isNew ? this.stored.attributes.readable : [];
    for (const [name, text] of held) if (!changes.has(name)) changes.set(name, text);
    for (const name of this.#leftBefore) if (!changes.has(name)) changes.set(name, null);
    return changes;
  }

  /**
   * What a sign-in has left behind before another one, or a sign-out, took its place: the store only knows the rule of
   * the last one.
   */
  get #leftBefore(): string[] {
    if (this.clears) return [];
    const kept = this.authentication?.kept;
    return this.stored.attributes.namesLeft.filter((name) => !kept || isKept(name, kept));
  }

  /** Records that the store has made the last save, at this time if that signed somebody in. */
  saved(save: CreateSession | UpdateSession, authenticatedAt: number | undefined): void {
    this.attributes.saved(save.attributes);
    // Another timeout may have to be renewed earlier.
    if (save.maxInactiveInterval !== undefined) this.isFreshUntil = -Infinity;
    const written = this.#written;
    if (written) this.stored.authenticatedAt = written.kept ? (authenticatedAt ?? written.at) : undefined;
    // Otherwise somebody has signed in or out, or the session was cleared, during the save.
    if (this.authentication === written) this.authentication = undefined;
    if (!this.stored.attributes.left) this.clears = false;
    if (save.kind === 'update' && save.closes) this.closes = false;
  }

  #assertAllowed(): void {
    if (this.refusal) throw this.refusal;
    this.response?.noteChange?.();
  }

  #exchangeTimeout(from: number, to: number): void {
    // The application has set another one otherwise.
    if (this.timeouts.maxInactiveInterval === from) this.setTimeout('maxInactiveInterval', to);
  }
}

const OVER =
  'The session was ended in this request and cannot be changed any more. To keep some attributes after a logout, ' +
  'remove the others and set principalName to undefined instead of calling signOut() or invalidate()';
