import {
  SessionAttributeError,
  type SessionBound,
  SessionConflictError,
  SessionGoneError,
  SessionStateError,
  SessionStoreError,
  TooManySessionsError,
} from '../errors/session.errors.js';
import {
  assertFree,
  assertName,
  assertPrincipalName,
  assertRemember,
  DEVICE_ATTRIBUTE,
  HIDDEN,
  PRINCIPAL_ATTRIBUTE,
  PROVIDER_ATTRIBUTE,
  REMEMBER_ME_ATTRIBUTE,
} from './attribute-names.js';
import { isKept, keptAttributes } from './kept-attributes.js';
import { readText } from './json-attribute.serializer.js';
import { SafePromise } from './safe-promise.js';
import { fullError, type SessionBounds } from './session-bounds.js';
import type { AttributeChanges, SessionDeletedReason, WriteReply } from './session-change.js';
import type { SessionRecord } from './session-record.js';
import {
  assertRotatable,
  assertStartable,
  secondsRemembered,
  type SessionBinding,
  type SessionCaller,
  type SessionEnd,
  type SessionResponse,
  takesToken,
} from './session-response.js';
import * as states from './session-state.js';
import type {
  CreatedSession,
  SentSave,
  SessionSave,
  SessionState,
  SessionWriter,
  Settlement,
} from './session-state.js';
import { endsNow, secondsOf, type SessionTimeouts } from './session-timeouts.js';
import type { SessionToken } from './session-token.js';
import { bindingIn, deviceIn } from '../device/device-binding.js';
import {
  type BoundDevice,
  type ProviderClaims,
  type SaveOutcome,
  type Session,
  type SessionAttributeName,
  type SessionSignIn,
  shownBy,
} from './session.js';
import { StoredAttributes, TrackedAttributes } from './tracked-attributes.js';

type Update<T> = (current: T | undefined) => T | undefined;

// 256 random bits do not collide. The limit keeps a broken random source, or a broken store, from looping for ever.
const MAX_COLLISIONS = 3;

/** The one implementation of `Session`: what the application has changed, on top of what the store has. */
export class TrackedSession implements Session {
  readonly #writer: SessionWriter;
  readonly #attributes: TrackedAttributes;
  #state: SessionState;
  #binding: SessionBinding = {};
  #beforeSave: (() => void) | undefined;
  /** Whether it runs before a save that the response waits for, so that its headers take another token. */
  #isBeforeResponse = false;
  /** The ends of other sessions, which come first: so a request that failed in between can be repeated. */
  #beforeEnd: readonly SessionEnd[] | undefined;
  #permission: Promise<void> | undefined;
  /** A creation or rotation whose reply was lost: the store may have made it. */
  #unanswered: SentSave | undefined;
  #turn: Promise<unknown> | undefined;
  #provenBinding: string | undefined;

  static create(writer: SessionWriter, timeouts: SessionTimeouts, presentedIds: readonly string[] = []) {
    const { id, token } = writer.drawKey();
    const now = Date.now();
    const times = { creationTime: now, lastAccessedTime: now, ...timeouts, timeToLive: undefined };
    return new TrackedSession(writer, { id, ...times, attributes: [] }, { token, presentedIds });
  }

  /** A `Session` as its implementation. @throws TypeError for an object that is not a session of this library */
  static of(session: Session): TrackedSession {
    if (session instanceof TrackedSession) return session;
    const shown = shownBy(session);
    if (shown instanceof TrackedSession) return shown;
    throw new TypeError('Not a session of this library: use SessionRepository.createSession() or findById()');
  }

  constructor(writer: SessionWriter, record: SessionRecord, created?: CreatedSession) {
    this.#writer = writer;
    const shownId = () => writer.shown(this.storedId ?? '');
    const stored = new StoredAttributes(record.attributes, writer.serializer, writer.warnings, shownId);
    this.#attributes = new TrackedAttributes(stored, this);
    this.#state = states.stateOf(record, stored.has(PRINCIPAL_ATTRIBUTE), created);
    Object.preventExtensions(this); // A property would be lost silently.
  }

  get id(): string {
    return this.#state.id;
  }

  get isNew(): boolean {
    return this.#state.stored.id === undefined;
  }

  get isGone(): boolean {
    return states.isGone(this.#state);
  }

  get creationTime(): number {
    return this.#state.stored.creationTime;
  }

  get lastAccessedTime(): number {
    return this.#state.stored.lastAccessedTime;
  }

  get maxInactiveInterval(): number {
    return this.#state.timeouts.maxInactiveInterval;
  }

  set maxInactiveInterval(timeout: number | string) {
    this.#setTimeout('maxInactiveInterval', timeout);
  }

  get absoluteTimeout(): number {
    return this.#state.timeouts.absoluteTimeout;
  }

  set absoluteTimeout(timeout: number | string) {
    this.#setTimeout('absoluteTimeout', timeout);
  }

  #setTimeout(name: keyof SessionTimeouts, timeout: number | string): void {
    this.#assertWritable();
    const seconds = secondsOf(name, timeout);
    const { longestAbsoluteTimeout: longest = Infinity } = this.#writer;
    if (name === 'absoluteTimeout' && (seconds < 0 ? Infinity : seconds) > longest) {
      throw new RangeError(`absoluteTimeout must be at most ${longest} seconds with \`security: 'strict'\``);
    }
    this.#change({ timeouts: { ...this.#state.timeouts, [name]: seconds } });
  }

  /** Both timeouts: the same object until one is set. */
  get timeouts(): SessionTimeouts {
    return this.#state.timeouts;
  }

  get principalName(): string | undefined {
    const name = this.getAttribute(PRINCIPAL_ATTRIBUTE);
    return typeof name === 'string' ? name : undefined;
  }

  set principalName(name: string | undefined) {
    if (name !== undefined) assertPrincipalName(name);
    const isOther = name !== this.peekAttribute(PRINCIPAL_ATTRIBUTE);
    // Whoever becomes the user gets another token, as by `signIn()`.
    if (isOther && name !== undefined && !this.isNew) this.#assertRotatable();
    this.#become(name, isOther && takesToken(this.response));
  }

  get device(): BoundDevice | undefined {
    return deviceIn(this.peekAttribute(DEVICE_ATTRIBUTE), this.#provenBinding);
  }

  /** The request has proven to come from the browser of the binding with this id. */
  setProven(bindingId: string): void {
    this.#provenBinding = bindingId;
  }

  get authenticatedAt(): number | undefined {
    return this.isOver ? undefined : states.authenticatedAt(this.#state);
  }

  get storedAuthenticatedAt(): number | undefined {
    return this.#state.stored.authenticatedAt;
  }

  get signsIn(): boolean {
    return !this.isOver && states.signsIn(this.#state);
  }

  get attributeNames(): SessionAttributeName[] {
    return this.isOver ? [] : this.#attributes.names;
  }

  getAttribute<T = unknown>(name: string): T | undefined {
    return HIDDEN.has(name) ? undefined : this.getOwnAttribute<T>(name);
  }

  getOwnAttribute<T>(name: string): T | undefined {
    return this.isOver ? undefined : (this.#attributes.get(name) as T | undefined);
  }

  getRequiredAttribute<T = unknown>(name: string): T {
    const value = this.getAttribute<T>(name);
    if (value === undefined) throw new SessionAttributeError(name, 'is required and missing');
    return value;
  }

  getAttributeOrDefault<T>(name: string, defaultValue: T): T {
    return this.getAttribute<T>(name) ?? defaultValue;
  }

  setAttribute(name: string, value: unknown): void {
    assertFree(name, value);
    this.setOwnAttribute(name, value);
  }

  setOwnAttribute(name: string, value: unknown): void {
    this.#assertStartable();
    this.#attributes.set(name, value);
  }

  /** See `TrackedAttributes.assign()`. */
  assignAttribute(name: string, value: unknown): void {
    assertFree(name, value);
    this.#assertStartable();
    this.#attributes.assign(name, value);
  }

  removeAttribute(name: string): void {
    this.setAttribute(name, undefined);
  }

  updateAttribute<T = unknown>(name: string, update: Update<T>): Promise<T | undefined> {
    const { rule } = this.#writer;
    const ruled = rule ? (rule.updating(this, name, update as (current: unknown) => unknown) as Update<T>) : update;
    return SafePromise.of(this.#updateAttribute(name, ruled, true));
  }

  updateOwnAttribute<T = unknown>(name: string, update: Update<T>): Promise<T | undefined> {
    return SafePromise.of(this.#updateAttribute(name, update, false));
  }

  signIn(name: string, { remember, keep, deviceBound = true, provider }: SessionSignIn = {}): void {
    assertPrincipalName(name);
    if (remember !== undefined) assertRemember(remember);
    const login = this.#loginOf(name, provider);
    this.#assertRotatable();
    this.#rotate(() => this.#signIn(name, remember, keep));
    if (!deviceBound) this.#attributes.set(DEVICE_ATTRIBUTE, false);
    if (login !== undefined) this.#attributes.set(PROVIDER_ATTRIBUTE, login);
  }

  /** A user who signs in again, as with a password, stays one whom the provider can sign out. */
  #loginOf(name: string, provider: ProviderClaims | undefined): unknown {
    if (provider === undefined) return this.#isOfAnother(name) ? undefined : this.peekAttribute(PROVIDER_ATTRIBUTE);
    if (!this.#writer.providers) throw new SessionStateError(NO_PROVIDERS);
    return this.#writer.providers.readClaims(provider);
  }

  signOut(): void {
    this.#invalidate('signed-out');
    this.#beforeEnd = this.#binding.companions;
  }

  changeSessionId(): string {
    this.#assertRotatable();
    return this.#rotate();
  }

  /** Rotates the session and removes all of its attributes, also those that other requests are saving. */
  startAnew(): void {
    this.#assertRotatable();
    this.#rotate(() => {
      this.#attributes.leave(() => true);
      const { hadUser } = this.#state.stored;
      // Of a visitor, it may be the login of an application that names no principal.
      const wasUser = hadUser || states.authenticatedAt(this.#state) !== undefined;
      this.#change({ clears: true, authentication: wasUser ? states.SIGNED_OUT : undefined });
    });
  }

  /** Another id at the next save, to which nothing leads from the former one. Not where the client cannot be told. */
  shutOut(): void {
    if (this.isNew || this.isOver || !takesToken(this.response)) return;
    this.#assertRotatable();
    if (this.storedId === this.id) this.#rotate();
    this.#change({ closes: true });
  }

  invalidate(): void {
    this.#invalidate(this.#state.deletion ?? 'invalidated');
  }

  save(callback?: never): Promise<SaveOutcome> {
    if (typeof callback === 'function') throw new TypeError('save() takes no callback: await session.save()');
    return this.#saveInTurn(false);
  }

  saveBeforeResponse(): Promise<SaveOutcome> {
    return this.#saveInTurn(true);
  }

  get lastSave(): Promise<unknown> | undefined {
    return this.#turn;
  }

  /** The id in the store until the next save; undefined while the session is new. */
  get storedId(): string | undefined {
    return this.#state.stored.id;
  }

  get shownId(): string {
    return this.#writer.shown(this.id);
  }

  get isDirty(): boolean {
    // What was set comes first, because it needs no encoding.
    if (this.isSet) return true;
    return !this.#state.stored.ended && !states.isNeverStored(this.#state) && this.#attributes.hasChangedInPlace;
  }

  rest(): void {
    this.#attributes.rest();
  }

  /** Whether there is anything to save, apart from objects that were changed in place: it encodes none. */
  get isSet(): boolean {
    return this.#beforeEnd !== undefined || states.isSet(this.#state, this.#attributes);
  }

  /** The token to send to the client: that of a session that was created or rotated here, once it is stored. */
  get tokenToSend(): SessionToken | undefined {
    const { stored, id, token } = this.#state;
    return !this.isOver && !stored.ended && stored.id === id ? token : undefined;
  }

  get isDeleted(): boolean {
    return this.#state.stored.ended === 'deleted';
  }

  /** Whether this object ended the session, even if another request has rotated it in the meantime. */
  get wasEnded(): boolean {
    return this.#state.stored.wasEnded;
  }

  /** Milliseconds since the store last renewed the session; undefined for a session that is new or never expires. */
  get idleTime(): number | undefined {
    return this.#state.stored.idleTime;
  }

  /** When the store loaded the session, by its clock: epoch milliseconds. */
  get loadedAt(): number {
    const { idleTime } = this;
    return idleTime === undefined ? Date.now() : this.lastAccessedTime + idleTime;
  }

  /** An attribute for the library's own reads: undefined, never an error, when the value cannot be decoded. */
  peekAttribute(name: string): unknown {
    return this.isOver ? undefined : this.#attributes.peek(name);
  }

  /** Whether the store has a value of an attribute that cannot be read, such as without the key of the encryption. */
  isUnreadable(name: string): boolean {
    const { stored } = this.#attributes;
    return stored.has(name) && stored.peek(name) === undefined;
  }

  get storedPrincipal(): string | undefined {
    const name = this.#attributes.stored.peek(PRINCIPAL_ATTRIBUTE);
    return typeof name === 'string' ? name : undefined;
  }

  get changesPrincipal(): boolean {
    return this.peekAttribute(PRINCIPAL_ATTRIBUTE) !== this.storedPrincipal;
  }

  get isOver(): boolean {
    const { deletion, stored } = this.#state;
    return deletion !== undefined || stored.ended === 'deleted';
  }

  /** Lets what runs before each save change the session now. Never throws: the save does, for the same. */
  complete(): void {
    try {
      if (!this.isOver) this.#complete();
    } catch {
      // Nothing was signed in or out.
    }
  }

  /** Whether the next save ends the session, or leaves nobody signed in who was. */
  get endsLogin(): boolean {
    const isSignedOut = this.storedPrincipal !== undefined && this.peekAttribute(PRINCIPAL_ATTRIBUTE) === undefined;
    return this.isOver || isSignedOut || endsNow(this.#state.timeouts);
  }

  get response(): SessionResponse | undefined {
    return this.#binding.response;
  }

  /** The value that the next request reads of an attribute with this value. @throws SessionAttributeError */
  asStored(name: string, value: unknown): unknown {
    const isAsGiven = value === undefined || typeof value === 'string' || typeof value === 'boolean';
    if (isAsGiven || value === null) return value;
    const { stored } = this.#attributes;
    return readText(stored.serializer, stored.encode(name, value)) ?? undefined;
  }

  get storedNames(): string[] {
    return this.#attributes.stored.names;
  }

  peekStored(name: string): unknown {
    return this.#attributes.stored.peek(name);
  }

  bindTo(response: SessionResponse, binding?: Omit<SessionBinding, 'response'>): void {
    this.#binding = { response, ...binding };
  }

  get caller(): SessionCaller | undefined {
    return this.#binding.caller;
  }

  /**
   * The session gets another id with it: a token from before opens nothing, and what was opened with it ends. Who signs
   * out where the client cannot be told keeps the id.
   * @throws SessionStateError for a sign-in after the first byte, over an open connection or outside of a request
   */
  setPrincipal(name: string | undefined): void {
    if (name !== undefined && this.keepsId) {
      this.#assertRotatable();
      throw new SessionStateError(SIGNED_IN_OUTSIDE);
    }
    this.#become(name, true);
  }

  /** Whether another principal would leave a stored session its id: the client cannot be told of another one. */
  get keepsId(): boolean {
    return this.storedId !== undefined && this.storedId === this.id && !this.#takesToken;
  }

  /** Records the principal that the session had before, as its content shows. It keeps its id. */
  adoptPrincipal(name: string): void {
    this.#become(name, false);
  }

  keepIdle(): void {
    this.#change({ keepsIdle: true });
  }

  /** The store has just renewed the session: for so many milliseconds, a save of attributes need not renew it again. */
  keepIdleFor(duration: number): void {
    this.#change({ isFreshUntil: performance.now() + duration });
  }

  /** Forgets the changes that are not saved, but for a rotation. */
  discard(): void {
    this.#attributes.discard();
    if (!this.#state.clears) this.#attributes.stored.stay();
    this.#state = states.discarded(this.#state);
  }

  replaceBy(loaded: Session): boolean {
    if (this.isOver || this.id !== loaded.id) return false;
    const other = TrackedSession.of(loaded);
    this.#attributes.replaceBy(other.#attributes);
    this.#state = states.reloaded(this.#state, other.#state.stored);
    return true;
  }

  /** From now on, `action` runs before each save, which also writes what it changes. */
  beforeSave(action: () => void): void {
    this.#beforeSave = action;
  }

  /** What logs may show of the session: no token and no value of an attribute. */
  toJSON(): object {
    const { shownId: id, isNew, creationTime, lastAccessedTime, maxInactiveInterval, absoluteTimeout } = this;
    const times = { creationTime, lastAccessedTime, maxInactiveInterval, absoluteTimeout };
    return { id, isNew, ...times, attributeNames: this.attributeNames };
  }

  [Symbol.for('nodejs.util.inspect.custom')](): object {
    return this.toJSON();
  }

  get bounds(): SessionBounds {
    return states.boundsOf(this.#attributes, this.#writer);
  }

  reached(limit: SessionBound | 'maxSessions' | 'updateTimeout'): void {
    const name = this.#attributes.peek(PRINCIPAL_ATTRIBUTE);
    const principalName = typeof name === 'string' ? name : undefined;
    const report = { request: this.response?.request, limit, sessionId: this.storedId, principalName };
    this.#writer.securityEvents?.report('limit-reached', report);
  }

  #change(changes: Partial<SessionState>): void {
    this.#state = { ...this.#state, ...changes };
  }

  #assertAllowed(): void {
    const { refusal, response } = this.#binding;
    if (refusal) throw refusal;
    response?.noteChange?.();
  }

  #assertWritable(): void {
    this.#assertAllowed();
    if (this.isOver) throw new SessionStateError(OVER);
  }

  #assertStartable(): void {
    this.#assertWritable();
    if (this.isNew) assertStartable(this.response);
  }

  #assertRotatable(): void {
    this.#assertWritable();
    assertRotatable(this.response);
  }

  get #takesToken(): boolean {
    return this.#isBeforeResponse ? this.response?.headersSent === false : takesToken(this.response);
  }

  #invalidate(reason: SessionDeletedReason): void {
    this.#assertAllowed();
    this.#change({ deletion: reason });
  }

  /** A fresh token and id, which take effect at the save together with what `change` changes. */
  #rotate(change?: () => void): string {
    // First, because without a token nothing may change. After a creation whose reply was lost, the store may know the
    // session already.
    const { id, token } = this.#writer.drawKey(this.storedId ?? this.#unanswered?.save.id);
    change?.();
    this.#change({ id, token });
    return id;
  }

  /** `remember` unset: a user who signs in again stays remembered. `keep` unset: see `Session.signIn()`. */
  #signIn(name: string, remember: boolean | undefined, keep: readonly string[] | undefined): void {
    const rememberedFor = remember ? secondsRemembered(this.response) : this.#keptFor(name, remember);
    const { ended, hadUser } = this.#state.stored;
    if (ended === 'gone' || (ended === 'rotated' && hadUser)) throw new SessionGoneError(states.NOT_SIGNED_IN);
    const { visitorAttributes, timeouts } = this.#writer;
    const attributes = this.#attributes;
    // First, because nothing may have changed when the name is too long, or a resolver gives no whole seconds.
    const maxInactiveInterval = secondsOf('maxInactiveInterval', rememberedFor ?? timeouts.maxInactiveInterval);
    attributes.encode(PRINCIPAL_ATTRIBUTE, name);
    const kept = keptAttributes(keep, visitorAttributes, this.#isOfAnother(name));
    this.#change({
      authentication: { kept, at: Date.now() },
      timeouts: { maxInactiveInterval, absoluteTimeout: timeouts.absoluteTimeout },
    });
    attributes.leave((each) => !isKept(each, kept));
    attributes.set(PRINCIPAL_ATTRIBUTE, name);
    if (rememberedFor !== undefined) attributes.set(REMEMBER_ME_ATTRIBUTE, true);
  }

  /** Seconds to remember a sign-in that does not say: of the user whose session is remembered, and of no other one. */
  #keptFor(name: string, remember: boolean | undefined): number | undefined {
    const stays = remember === undefined && this.#attributes.peek(PRINCIPAL_ATTRIBUTE) === name;
    return stays && this.#attributes.peek(REMEMBER_ME_ATTRIBUTE) === true ? this.response?.rememberedFor : undefined;
  }

  #isOfAnother(name: string): boolean {
    const names = [this.#attributes.peek(PRINCIPAL_ATTRIBUTE), this.peekStored(PRINCIPAL_ATTRIBUTE)];
    return names.some((each) => each !== undefined && each !== name);
  }

  /** `isAnother`: whether the sign-in before was that of somebody else. */
  #become(name: string | undefined, isAnother: boolean): void {
    const assign = () => this.#assignPrincipal(name, isAnother);
    if (isAnother && this.#takesToken && this.storedId === this.id) this.#rotate(assign);
    else assign();
  }

  /** `isAnother`: nobody has shown to be the new one, unless it is the name of who has just signed in. */
  #assignPrincipal(name: string | undefined, isAnother: boolean): void {
    this.#assertStartable();
    const { timeouts, anonymousTimeout } = this.#writer;
    const hadOne = this.#attributes.peek(PRINCIPAL_ATTRIBUTE) !== undefined;
    this.#attributes.set(PRINCIPAL_ATTRIBUTE, name);
    // A binding stays: to bind the same browser anew would let who has copied its cookies bind another one.
    const isBound = bindingIn(this.peekAttribute(DEVICE_ATTRIBUTE))?.key !== undefined;
    if (isAnother && !isBound && this.peekAttribute(DEVICE_ATTRIBUTE) !== undefined)
      this.#attributes.set(DEVICE_ATTRIBUTE, undefined);
    // Whoever acts as another user stays one whom the provider can sign out.
    if (name === undefined && this.peekAttribute(PROVIDER_ATTRIBUTE) !== undefined)
      this.#attributes.set(PROVIDER_ATTRIBUTE, undefined);
    const [from, to] = hadOne
      ? [timeouts.maxInactiveInterval, anonymousTimeout]
      : [anonymousTimeout, timeouts.maxInactiveInterval];
    // The application has set another one otherwise.
    if (hadOne === (name === undefined) && this.maxInactiveInterval === from) this.maxInactiveInterval = to;
    if (name === undefined || (isAnother && !states.signsIn(this.#state)))
      this.#change({ authentication: states.SIGNED_OUT });
  }

  #saveInTurn(isBeforeResponse: boolean): Promise<SaveOutcome> {
    if (this.#turn) {
      return this.#inTurn(
        () => this.#save(isBeforeResponse),
        // A save that waits for one that could not end the session shares its failure.
        async (error) => {
          if (error instanceof SessionGoneError && this.#state.deletion) throw error;
          return this.#save(isBeforeResponse);
        },
      );
    }
    // At once, which most saves are.
    const saving = this.#save(isBeforeResponse);
    this.#turn = saving;
    return saving;
  }

  /** `afterFailure`: a step also follows one that failed. */
  #inTurn<T>(step: () => Promise<T>, afterFailure: (error: unknown) => Promise<T> = step): Promise<T> {
    const result = (this.#turn ?? Promise.resolve()).then(step, afterFailure);
    this.#turn = result;
    return result;
  }

  async #save(isBeforeResponse = false): Promise<SaveOutcome> {
    if (this.#unanswered) await this.#repeat(this.#unanswered);
    if (this.#beforeEnd) {
      await Promise.all(this.#beforeEnd.map((end) => end()));
      this.#beforeEnd = undefined;
    }
    if (states.isNeverStored(this.#state)) return this.#endPresented();
    for (let collisions = 0; collisions < MAX_COLLISIONS; collisions++) {
      if (!this.isOver) this.#prepare(isBeforeResponse);
      if (states.mayBeginAnew(this.#state, this.#attributes)) {
        this.#state = states.begunAnew(this.#state);
        this.#rotate();
      }
      if (this.isNew && this.response?.mayCreate) await this.#ask(this.response.mayCreate, isBeforeResponse);
      const save = this.#nextSave();
      const failure = states.failureToStart(this.#state, this.#attributes);
      if (failure !== undefined) return this.#settled({ state: states.failed(this.#state), failure });
      if (!save) return this.isGone ? 'gone' : 'saved';
      if (save.kind !== 'delete') this.#attributes.sent(save.attributes);
      const sentSave = { save, from: this.#state };
      const reply = await this.#write(sentSave);
      if (reply.outcome === 'collision') this.#rotate();
      else {
        const outcome = this.#settle(sentSave, reply);
        if (outcome === 'saved') await this.#confirm(save);
        if (!states.mayBeginAnew(this.#state, this.#attributes)) return outcome;
      }
    }
    throw new SessionStoreError('No free session id was found: is the random source of this machine broken?');
  }

  #nextSave(): SessionSave | undefined {
    return states.nextSave(this.#state, this.#attributes, this.#binding, this.#writer);
  }

  /** Asks once whether a session that is about to be stored for the first time may be. @throws the refusal */
  async #ask(mayCreate: () => Promise<void>, isBeforeResponse: boolean): Promise<void> {
    if (this.#nextSave()?.kind === 'create') await (this.#permission ??= mayCreate());
    this.#prepare(isBeforeResponse);
  }

  #prepare(isBeforeResponse: boolean): void {
    if (!this.#beforeSave && !this.#writer.rule) return;
    this.#isBeforeResponse = isBeforeResponse;
    try {
      this.#complete();
    } finally {
      this.#isBeforeResponse = false;
    }
  }

  #complete(): void {
    this.#beforeSave?.();
    this.#writer.rule?.beforeSave(this);
  }

  #write(sentSave: SentSave): Promise<WriteReply> {
    const { save } = sentSave;
    const givesId = save.kind === 'create' || (save.kind === 'update' && save.newId !== undefined);
    this.#unanswered = givesId ? sentSave : undefined;
    this.#state = states.sent(this.#state, save);
    const reply = this.#writer.write(save);
    return givesId ? this.#answered(reply) : reply;
  }

  async #answered(reply: Promise<WriteReply>): Promise<WriteReply> {
    try {
      await reply;
      this.#unanswered = undefined;
    } catch (error) {
      // What the store never does is no lost reply: it would fail again, whatever has changed in the meantime.
      if (error instanceof SessionStateError) this.#unanswered = undefined;
    }
    return reply;
  }

  /** Sends a save again whose reply was lost. `collision`: the store had made it, as no other session draws the id. */
  async #repeat(unanswered: SentSave): Promise<void> {
    const reply = await this.#write(unanswered);
    const outcome = this.#settle(unanswered, reply.outcome === 'collision' ? { outcome: 'saved' } : reply);
    if (outcome === 'saved') await this.#confirm(unanswered.save);
  }

  /**
   * The identity provider may have signed the user out while the sign-in was under way. Looks only now, because a
   * logout that comes later finds the session. @throws what refuses the sign-in, once the session has ended
   */
  async #confirm(save: SessionSave): Promise<void> {
    if (save.kind === 'delete' || typeof save.attributes.get(PROVIDER_ATTRIBUTE) !== 'string') return;
    const refusal = await this.#writer.providers?.confirm(this).catch((error: unknown) => error as Error);
    if (!refusal) return;
    const { storedId: id } = this;
    // First, because nobody may get its token, even if the store cannot end it.
    this.#change({ deletion: 'revoked' });
    const ended = await this.#writer.write({ kind: 'delete', id: id!, reason: 'revoked' }).catch(() => undefined);
    if (ended) this.#state = states.withStored(this.#state, { ended: 'deleted', wasEnded: true });
    throw refusal;
  }

  /**
   * @throws TooManySessionsError or SessionBoundError for a refused save, SessionGoneError where every session of the
   *   user was ended meanwhile, which leave all changes unsaved; SessionGoneError where nothing could be started
   */
  #settle(sentSave: SentSave, reply: WriteReply): SaveOutcome {
    const { save } = sentSave;
    const settlement = states.settle(this.#state, sentSave, reply, this.#attributes);
    const { outcome, state, failure } = settlement;
    if (save.kind !== 'delete' && outcome === 'saved' && !state.stored.ended) this.#attributes.saved(save.attributes);
    if (failure === states.NOT_CREATED && save.kind === 'create') {
      const [sessionId, ...others] = save.presentedIds;
      // Of several tokens, the store does not say which one was replaced.
      const report = { request: this.response?.request, ...(others.length === 0 && { sessionId }) };
      this.#writer.securityEvents?.report('rotated-token', report);
    }
    return this.#settled(settlement, save.kind === 'delete' ? NO_ATTRIBUTES : save.attributes);
  }

  #settled({ state, outcome, limit, failure }: Settlement, changes: AttributeChanges = NO_ATTRIBUTES): SaveOutcome {
    this.#state = state;
    if (failure !== undefined) throw new SessionGoneError(failure);
    if (outcome) return outcome;
    if (limit && limit !== 'maxSessions') throw fullError(this, limit, changes);
    this.reached('maxSessions');
    throw new TooManySessionsError(this.#writer.maxSessions?.perPrincipal ?? 0);
  }

  /** Ends what the tokens of a request opened until another one rotated it, so that they open nothing any more. */
  async #endPresented(): Promise<SaveOutcome> {
    const { presentedIds, deletion: reason = 'invalidated' } = this.#state;
    const replies = await Promise.all(presentedIds.map((id) => this.#writer.write({ kind: 'delete', id, reason })));
    return this.#settled(states.settlePresented(this.#state, replies));
  }

  async #updateAttribute<T>(name: string, update: Update<T>, mustBeFree: boolean): Promise<T | undefined> {
    this.#assertWritable();
    if (mustBeFree) assertFree(name, update);
    const attributes = this.#attributes;
    const change = update as (current: unknown) => unknown;
    // The store may still have an attribute that a sign-in did not keep.
    if (this.isNew || attributes.stored.isLeft(name)) {
      attributes.update(name, (value) => this.setOwnAttribute(name, change(value)));
      return this.getOwnAttribute<T>(name);
    }
    // In a turn: a save of this session could change the value, or the id, in between.
    const outcome = await this.#inTurn(() => this.#compareAndSet(name, change));
    return outcome === 'saved' ? this.getOwnAttribute<T>(name) : undefined;
  }

  /** Together with what other requests make of the attribute. @throws as `ConcurrentUpdates.run()` */
  async #compareAndSet(name: string, update: (current: unknown) => unknown): Promise<SaveOutcome> {
    assertName(name);
    const attributes = this.#attributes;
    const { stored } = attributes;
    const { id, ended } = this.#state.stored;
    if (this.isOver || ended || id === undefined) return 'gone';
    // A value that this request set and did not save: no other request has seen it, so there is nothing to compare.
    if (attributes.isChanged(name)) {
      attributes.update(name, (current) => attributes.set(name, update(current)));
      return this.#save();
    }
    const { updates, indexes, serializer } = this.#writer;
    const apply = (current: string | undefined) => {
      // A copy: if `update` throws after changing the object in place, the change must not be saved later.
      const read = () => stored.decodeText(name, current);
      const value = updatedValue(name, update, read, (each) => attributes.encode(name, each));
      const text = value === undefined ? null : attributes.encode(name, value);
      return { text, indexes: indexes.changesOf(new Map([[name, text]]), serializer) };
    };
    const access = { ...states.accessOf(this.#state, true), bounds: this.bounds };
    const known = stored.text(name);
    const result = await updates
      .run({ id, name, known, access, client: this.response, apply })
      .catch((error: unknown) => {
        if (error instanceof SessionConflictError) this.reached('updateTimeout');
        throw error;
      });
    if (result.outcome === 'full') throw fullError(this, result.bound, new Map([[name, '']]));
    if (result.outcome === 'saved') attributes.refresh(name, result.text);
    else this.#state = states.withStored(this.#state, { ended: result.rotated ? 'rotated' : 'gone' });
    return result.outcome;
  }
}

const NO_ATTRIBUTES: AttributeChanges = new Map();

const NO_PROVIDERS =
  '`provider` of signIn() has no effect without ProviderLogoutModule of @nest-session/provider-logout: import it in the ' +
  'root module';

const SIGNED_IN_OUTSIDE =
  'A user cannot be signed in to a stored session outside of its request, because no cookie with another id can be sent ' +
  'to the client. Do it in an HTTP request, by the session of that request';

/** @throws TypeError when the update has changed its copy in place and returns nothing: the attribute would be lost */
function updatedValue(
  name: string,
  update: (current: unknown) => unknown,
  read: () => unknown,
  textOf: (value: unknown) => string,
): unknown {
  const copy = read();
  const value = update(copy);
  const isObject = typeof copy === 'object' && copy !== null;
  if (value === undefined && isObject && textOf(copy) !== textOf(read())) {
    throw new TypeError(
      `The update of session attribute ${JSON.stringify(name)} has changed the value in place and returned nothing, which ` +
        'would remove the attribute: return the changed value, or null to remove it',
    );
  }
  return value ?? undefined;
}

const OVER =
  'The session was ended in this request and cannot be changed any more. To keep some attributes after a logout, ' +
  'remove the others and set principalName to undefined instead of calling signOut() or invalidate()';
