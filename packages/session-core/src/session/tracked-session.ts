import { SessionAttributeError } from '../errors/session.errors.js';
import { assertFree, assertPrincipalName, assertRemember, PRINCIPAL_ATTRIBUTE } from './attribute-names.js';
import { readText } from './json-attribute.serializer.js';
import { takesToken, type SessionResponse } from './session-response.js';
import { SafePromise } from './safe-promise.js';
import {
  type SessionAttributeName,
  type SaveOutcome,
  type Session,
  type SessionSignIn,
  describeSession,
  shownBy,
} from './session.js';
import type { SessionRecord } from './session-record.js';
import { endsNow, type SessionTimeouts } from './session-timeouts.js';
import type { SessionToken } from './session-token.js';
import type { SessionWriter } from './session-writer.js';
import { SessionSaver } from './session.saver.js';
import { newRecord, StoredSession } from './stored-session.js';
import { type CreatedSession, type SessionBinding, type SessionCaller, UnsavedChanges } from './unsaved-changes.js';

type Update<T> = (current: T | undefined) => T | undefined;

/** The one implementation of `Session`: what the application has changed, on top of what the store has. */
export class TrackedSession implements Session {
  readonly #writer: SessionWriter;
  readonly #stored: StoredSession;
  readonly #changes: UnsavedChanges;
  #lazySaver: SessionSaver | undefined;

  /** A new session. `presentedIds`: the ids that the client presented and that opened nothing. */
  static create(writer: SessionWriter, timeouts: SessionTimeouts, presentedIds: readonly string[] = []) {
    const { id, token } = writer.drawKey();
    return new TrackedSession(writer, newRecord(id, timeouts), { token, presentedIds });
  }

  /** A session that the store returned. */
  static restore(writer: SessionWriter, record: SessionRecord): TrackedSession {
    return new TrackedSession(writer, record);
  }

  /** A `Session` as its implementation. @throws TypeError for an object that is not a session of this library */
  static of(session: Session): TrackedSession {
    if (session instanceof TrackedSession) return session;
    const shown = shownBy(session);
    if (shown instanceof TrackedSession) return shown;
    throw new TypeError('Not a session of this library: use SessionRepository.createSession() or findById()');
  }

  private constructor(writer: SessionWriter, record: SessionRecord, created?: CreatedSession) {
    this.#writer = writer;
    this.#stored = new StoredSession(record, writer, created !== undefined);
    this.#changes = new UnsavedChanges(this.#stored, writer, record.id, created);
    Object.preventExtensions(this); // A property would be lost silently.
  }

  get id(): string {
    return this.#changes.id;
  }

  get isNew(): boolean {
    return this.#changes.isNew;
  }

  get isGone(): boolean {
    return this.#stored.ended === 'gone';
  }

  get creationTime(): number {
    return this.#stored.creationTime;
  }

  get lastAccessedTime(): number {
    return this.#stored.lastAccessedTime;
  }

  get maxInactiveInterval(): number {
    return this.#changes.timeouts.maxInactiveInterval;
  }

  set maxInactiveInterval(timeout: number | string) {
    this.#changes.setTimeout('maxInactiveInterval', timeout);
  }

  get absoluteTimeout(): number {
    return this.#changes.timeouts.absoluteTimeout;
  }

  set absoluteTimeout(timeout: number | string) {
    this.#changes.setTimeout('absoluteTimeout', timeout);
  }

  get principalName(): string | undefined {
    const name = this.getAttribute(PRINCIPAL_ATTRIBUTE);
    return typeof name === 'string' ? name : undefined;
  }

  set principalName(name: string | undefined) {
    if (name !== undefined) assertPrincipalName(name);
    const isOther = name !== this.peekAttribute(PRINCIPAL_ATTRIBUTE);
    // Whoever becomes the user gets another token, as by `signIn()`.
    if (isOther && name !== undefined && !this.isNew) this.#changes.assertRotatable();
    this.#become(name, isOther && takesToken(this.#changes.response));
  }

  get authenticatedAt(): number | undefined {
    return this.#changes.isOver ? undefined : this.#changes.authenticatedAt;
  }

  /** Whether `signIn()` was called since the last save. */
  get signsIn(): boolean {
    return !this.#changes.isOver && this.#changes.signsIn;
  }

  get attributeNames(): SessionAttributeName[] {
    return this.#changes.isOver ? [] : this.#changes.attributes.names;
  }

  getAttribute<T = unknown>(name: string): T | undefined {
    return this.#changes.isOver ? undefined : (this.#changes.attributes.get(name) as T | undefined);
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

  /** The same, for the attributes that only the library sets. */
  setOwnAttribute(name: string, value: unknown): void {
    this.#changes.assertStartable();
    this.#changes.attributes.set(name, value);
  }

  /** The same, but what the store has is not written again: see `TrackedAttributes.assign()`. */
  assignAttribute(name: string, value: unknown): void {
    assertFree(name, value);
    this.#changes.assertStartable();
    this.#changes.attributes.assign(name, value);
  }

  removeAttribute(name: string): void {
    this.setAttribute(name, undefined);
  }

  updateAttribute<T = unknown>(name: string, update: Update<T>): Promise<T | undefined> {
    return SafePromise.of(this.#updateAttribute(name, update, true));
  }

  /** The same, for the attributes that only the library sets. */
  updateOwnAttribute<T = unknown>(name: string, update: Update<T>): Promise<T | undefined> {
    return SafePromise.of(this.#updateAttribute(name, update, false));
  }

  async #updateAttribute<T>(name: string, update: Update<T>, mustBeFree: boolean): Promise<T | undefined> {
    this.#changes.assertWritable();
    if (mustBeFree) assertFree(name, update);
    // The store may still have an attribute that a sign-in did not keep.
    if (this.isNew || this.#stored.attributes.isLeft(name)) {
      this.#changes.attributes.update(name, (value) => this.setOwnAttribute(name, update(value as T | undefined)));
      return this.getAttribute<T>(name);
    }
    const outcome = await this.saver.updateAttribute(name, (current) => update(current as T | undefined));
    return outcome === 'saved' ? this.getAttribute<T>(name) : undefined;
  }

  signIn(name: string, { remember, keep }: SessionSignIn = {}): void {
    assertPrincipalName(name);
    if (remember !== undefined) assertRemember(remember);
    this.#changes.assertRotatable();
    this.saver.rotate(() => this.#changes.signIn(name, remember, keep));
  }

  signOut(): void {
    this.#changes.invalidate('signed-out');
  }

  changeSessionId(): string {
    this.#changes.assertRotatable();
    return this.saver.rotate();
  }

  /** Rotates the session and removes all of its attributes, also those that other requests are saving. */
  startAnew(): void {
    this.#changes.assertRotatable();
    this.saver.rotate(() => this.#changes.clear());
  }

  /**
   * Gives the session another id at the next save, unless a sign-in does, and lets nothing lead there from the former
   * one. Not where the client cannot be told.
   */
  shutOut(): void {
    if (this.isNew || this.#changes.isOver || !takesToken(this.#changes.response)) return;
    this.#changes.assertRotatable();
    const shut = () => void (this.#changes.closes = true);
    if (this.storedId === this.id) this.saver.rotate(shut);
    else shut();
  }

  invalidate(): void {
    this.#changes.invalidate();
  }

  save(callback?: never): Promise<SaveOutcome> {
    if (typeof callback === 'function') throw new TypeError('save() takes no callback: await session.save()');
    return this.saver.save();
  }

  /** The same, where the response waits for it. */
  saveBeforeResponse(): Promise<SaveOutcome> {
    return this.saver.save(true);
  }

  /** The id in the store until the next save; undefined while the session is new. */
  get storedId(): string | undefined {
    return this.#stored.id;
  }

  /** The id as log lines show it. */
  get shownId(): string {
    return this.#writer.shown(this.id);
  }

  /** Whether there is anything to save. */
  get isDirty(): boolean {
    return this.#changes.isDirty;
  }

  /** The application has finished: see `TrackedAttributes.rest()`. */
  rest(): void {
    this.#changes.attributes.rest();
  }

  /** Whether there is anything to save, apart from objects that were changed in place: it encodes none. */
  get isSet(): boolean {
    return this.#changes.isSet;
  }

  /** The token to send to the client: that of a session that was created or rotated here, once it is stored. */
  get tokenToSend(): SessionToken | undefined {
    const { isOver, id, token } = this.#changes;
    return !isOver && !this.#stored.ended && this.#stored.id === id ? token : undefined;
  }

  /** Whether this object ended the session. False when another request did. */
  get isDeleted(): boolean {
    return this.#stored.ended === 'deleted';
  }

  /** Whether this object ended the session, even if another request has rotated it in the meantime. */
  get wasEnded(): boolean {
    return this.#stored.wasEnded;
  }

  /** Milliseconds since the store last renewed the session; undefined for a session that is new or never expires. */
  get idleTime(): number | undefined {
    return this.#stored.idleTime;
  }

  /** An attribute for the library's own reads: undefined, never an error, when the value cannot be decoded. */
  peekAttribute(name: string): unknown {
    return this.#changes.isOver ? undefined : this.#changes.attributes.peek(name);
  }

  /** The principal in the store, as far as this object knows: undefined without one, or one that cannot be decoded. */
  get storedPrincipal(): string | undefined {
    const name = this.#stored.attributes.peek(PRINCIPAL_ATTRIBUTE);
    return typeof name === 'string' ? name : undefined;
  }

  /** Whether this object has somebody else signed in than the store, or nobody, until its next save. */
  get changesPrincipal(): boolean {
    return this.peekAttribute(PRINCIPAL_ATTRIBUTE) !== this.storedPrincipal;
  }

  /** Whether this object has ended the session, or ends it at its next save. */
  get isOver(): boolean {
    return this.#changes.isOver;
  }

  /** Lets what runs before each save change the session now. Never throws: the save does, for the same. */
  complete(): void {
    try {
      if (!this.isOver) this.#changes.beforeSave?.();
    } catch {
      // Nothing was signed in or out.
    }
  }

  /** Whether the next save ends the session, or leaves nobody signed in who was. */
  get endsLogin(): boolean {
    const isSignedOut = this.storedPrincipal !== undefined && this.peekAttribute(PRINCIPAL_ATTRIBUTE) === undefined;
    return this.isOver || isSignedOut || endsNow(this.#changes.timeouts);
  }

  /** The response of the request on whose behalf the session changes. */
  get response(): SessionResponse | undefined {
    return this.#changes.response;
  }

  /** The value that the next request reads of an attribute with this value. @throws SessionAttributeError */
  asStored(name: string, value: unknown): unknown {
    const isAsGiven = value === undefined || typeof value === 'string' || typeof value === 'boolean';
    if (isAsGiven || value === null) return value;
    const { attributes } = this.#stored;
    return readText(attributes.serializer, attributes.encode(name, value)) ?? undefined;
  }

  /** The value of an attribute in the store, as this object knows it; undefined when it cannot be decoded. */
  peekStored(name: string): unknown {
    return this.#stored.attributes.peek(name);
  }

  /** From now on, the session changes on behalf of the request with this response. */
  bindTo(response: SessionResponse, { companions, refusal, caller }: SessionBinding = {}): void {
    Object.assign(this.#changes, { response, companions, refusal, caller });
  }

  /** The request that the session changes on behalf of; undefined where there is none. */
  get caller(): SessionCaller | undefined {
    return this.#changes.caller;
  }

  /**
   * Sets another principal, or removes it. The session gets another id with it, unless one is to be saved anyway: a
   * token from before opens nothing, and what was opened with it ends. Over an open connection it keeps the id, and so
   * does who signs out after the first byte. @throws SessionStateError for a sign-in after the first byte
   */
  setPrincipal(name: string | undefined): void {
    const { id } = this.#stored;
    const keepsId = id !== undefined && id === this.#changes.id && !this.#takesToken;
    if (name !== undefined && keepsId && this.response?.lateChange === undefined) this.#changes.assertRotatable();
    this.#become(name, true);
  }

  /** Records the principal that the session had before, as its content shows. It keeps its id. */
  adoptPrincipal(name: string): void {
    this.#become(name, false);
  }

  /** `isAnother`: whether the sign-in before was that of somebody else. */
  #become(name: string | undefined, isAnother: boolean): void {
    const [changes, { id }] = [this.#changes, this.#stored];
    const assign = () => changes.setPrincipal(name, isAnother);
    if (isAnother && this.#takesToken && id !== undefined && id === changes.id) this.saver.rotate(assign);
    else assign();
  }

  /** Whether the client can get another token. */
  get #takesToken(): boolean {
    const { response, isBeforeResponse } = this.#changes;
    return isBeforeResponse ? response?.headersSent === false : takesToken(response);
  }

  /** From now on, a save does not renew the idle timeout. */
  keepIdle(): void {
    this.#changes.keepsIdle = true;
  }

  /** The store has just renewed the session: for so many milliseconds, a save of attributes need not renew it again. */
  keepIdleFor(duration: number): void {
    this.#changes.isFreshUntil = performance.now() + duration;
  }

  /** Forgets the changes that are not saved, but for a rotation. */
  discard(): void {
    this.#changes.discard();
  }

  /** Forgets all changes, and takes over what was loaded later. Returns false once it has ended or has another id. */
  replaceBy(loaded: Session): boolean {
    if (this.#changes.isOver || this.id !== loaded.id) return false;
    this.#stored.replaceBy(TrackedSession.of(loaded).#stored);
    this.#changes.reset();
    return true;
  }

  /** From now on, `action` runs before each save, which also writes what it changes. */
  beforeSave(action: () => void): void {
    this.#changes.beforeSave = action;
  }

  /** What logs may show of the session. */
  toJSON(): object {
    return describeSession(this, this.shownId);
  }

  [Symbol.for('nodejs.util.inspect.custom')](): object {
    return this.toJSON();
  }

  /** Makes its saves, one after the other. Most requests make none. */
  get saver(): SessionSaver {
    return (this.#lazySaver ??= new SessionSaver(this.#changes, this.#stored, this.#writer));
  }
}
