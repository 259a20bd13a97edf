import { SessionAttributeError } from '../errors/session.errors.js';
import { forDisconnected } from './attribute-updates.js';
import { ChangeGate } from './change-gate.js';
import type { SessionResponse } from './session-response.js';
import { assertFree, isOwnAttribute } from './own-attributes.js';
import type { SessionAttributeName } from './session-attributes.js';
import type { SessionToken } from './session-token.js';
import type { SessionRecord } from './session-record.js';
import { SessionState } from './session-state.js';
import type { SessionWriter } from './session-writer.js';
import { describeSession, shownBy } from './shown-session.js';
import { type SessionEnd, SessionSaver } from './session.saver.js';
import { PRINCIPAL_NAME_INDEX_NAME, type SaveOutcome, type Session, type SignInOptions } from './session.js';
import { assertPrincipalName } from './sign-in.js';
import { assertName } from './tracked-attributes.js';
import type { SessionTimeouts } from './tracked-timeouts.js';

type Update<T> = (current: T | undefined) => T | undefined;

/** The one implementation of `Session`: it tracks its own changes, and its repository writes them. */
export class TrackedSession implements Session {
  readonly #writer: SessionWriter;
  readonly #state: SessionState;
  readonly #saver: SessionSaver;
  readonly #gate: ChangeGate;
  #companions: readonly SessionEnd[] | undefined;

  /** A new session. `presentedIds`: the ids that the client presented and that opened nothing. */
  static create(writer: SessionWriter, timeouts: SessionTimeouts, presentedIds: readonly string[] = []) {
    return new TrackedSession(writer, SessionState.create(writer, timeouts, presentedIds));
  }

  /** A session that the store returned. */
  static restore(writer: SessionWriter, record: SessionRecord): TrackedSession {
    return new TrackedSession(writer, new SessionState(record, writer));
  }

  /** A `Session` as its implementation. @throws TypeError for an object that is not a session of this library */
  static of(session: Session): TrackedSession {
    const shown = shownBy(session);
    if (shown instanceof TrackedSession) return shown;
    throw new TypeError('Not a session of this library: use SessionRepository.createSession() or findById()');
  }

  private constructor(writer: SessionWriter, state: SessionState) {
    this.#writer = writer;
    this.#state = state;
    this.#gate = new ChangeGate(state);
    this.#saver = new SessionSaver(state, writer);
    Object.preventExtensions(this); // A property would be lost silently.
  }

  get id(): string {
    return this.#state.id;
  }

  get isNew(): boolean {
    return this.#state.isNew;
  }

  get isGone(): boolean {
    return this.#state.ended === 'gone';
  }

  get creationTime(): number {
    return this.#state.creationTime;
  }

  get lastAccessedTime(): number {
    return this.#state.lastAccessedTime;
  }

  get maxInactiveInterval(): number {
    return this.#state.timeouts.all.maxInactiveInterval;
  }

  set maxInactiveInterval(timeout: number | string) {
    this.#gate.assertWritable();
    this.#state.timeouts.set('maxInactiveInterval', timeout);
  }

  get absoluteTimeout(): number {
    return this.#state.timeouts.all.absoluteTimeout;
  }

  set absoluteTimeout(timeout: number | string) {
    this.#gate.assertWritable();
    this.#state.timeouts.set('absoluteTimeout', timeout);
  }

  get principalName(): string | undefined {
    const name = this.getAttribute(PRINCIPAL_NAME_INDEX_NAME);
    return typeof name === 'string' ? name : undefined;
  }

  set principalName(name: string | undefined) {
    if (name !== undefined) assertPrincipalName(name);
    const rotates = this.#gate.isResponseOpen && name !== this.peekAttribute(PRINCIPAL_NAME_INDEX_NAME);
    this.setPrincipal(name);
    // Nobody has shown to be the new one, unless it is the name of who has just signed in.
    if (rotates && !this.#state.authentication.kept) this.#state.signOut();
    // A token that was drawn here is known to nobody yet.
    if (rotates && this.#state.token === undefined) this.#saver.rotate();
  }

  get authenticatedAt(): number | undefined {
    return this.#state.isOver ? undefined : this.#state.authentication.at;
  }

  get attributeNames(): SessionAttributeName[] {
    return this.#state.isOver ? [] : this.#state.attributes.names;
  }

  getAttribute<T = unknown>(name: string): T | undefined {
    return this.#state.isOver ? undefined : (this.#state.attributes.get(name) as T | undefined);
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
    this.#gate.assertStartable();
    this.#state.attributes.set(name, value);
  }

  /** The same, but what the store has is not written again: see `TrackedAttributes.assign()`. */
  assignAttribute(name: string, value: unknown): void {
    assertFree(name, value);
    this.#gate.assertStartable();
    this.#state.attributes.assign(name, value);
  }

  removeAttribute(name: string): void {
    this.setAttribute(name, undefined);
  }

  updateAttribute<T = unknown>(name: string, update: Update<T>): Promise<T | undefined> {
    return forDisconnected(this.#updateAttribute(name, update, isOwnAttribute(name)));
  }

  /** The same, for the attributes that only the library sets. */
  updateOwnAttribute<T = unknown>(name: string, update: Update<T>): Promise<T | undefined> {
    return forDisconnected(this.#updateAttribute(name, update, false));
  }

  async #updateAttribute<T>(name: string, update: Update<T>, isRefused: boolean): Promise<T | undefined> {
    this.#gate.assertWritable();
    assertName(name);
    if (isRefused) assertFree(name, update);
    if (this.isNew || this.#state.isLeftBehind(name)) {
      this.setOwnAttribute(name, update(this.getAttribute<T>(name)));
      return this.getAttribute<T>(name);
    }
    const outcome = await this.#saver.updateAttribute(name, (current) => update(current as T | undefined));
    return outcome === 'saved' ? this.getAttribute<T>(name) : undefined;
  }

  signIn(name: string, { remember = false, keep }: SignInOptions = {}): void {
    assertPrincipalName(name);
    this.#gate.assertRotatable();
    this.#state.signIn(name, remember ? this.#gate.rememberedFor() : undefined, keep);
    this.#saver.rotate();
  }

  signOut(): void {
    this.invalidate();
    this.#saver.beforeEnd = this.#companions;
  }

  changeSessionId(): string {
    this.#gate.assertRotatable();
    return this.#saver.rotate();
  }

  /** Rotates the session and removes all of its attributes, also those that other requests are saving. */
  startAnew(): void {
    this.#gate.assertRotatable();
    this.#state.clear();
    this.#saver.rotate();
  }

  invalidate(): void {
    this.#gate.assertAllowed();
    this.#state.isInvalidated = true;
  }

  save(callback?: never): Promise<SaveOutcome> {
    if (typeof callback === 'function') throw new TypeError('save() takes no callback: await session.save()');
    return this.#saver.save();
  }

  /** The id in the store until the next save; undefined while the session is new. */
  get storedId(): string | undefined {
    return this.#state.storedId;
  }

  /** The id as log lines show it. */
  get shownId(): string {
    return this.#writer.shown(this.id);
  }

  /** Whether there is anything to save. */
  get isDirty(): boolean {
    return this.#saver.beforeEnd !== undefined || this.#state.isDirty;
  }

  /** The application has finished: see `TrackedAttributes.rest()`. */
  rest(): void {
    this.#state.attributes.rest();
  }

  /** Whether there is anything to save, apart from objects that were changed in place: it encodes none. */
  get isSet(): boolean {
    return this.#saver.beforeEnd !== undefined || this.#state.isSet;
  }

  /** The token to send to the client: that of a session that was created or rotated here, once it is stored. */
  get tokenToSend(): SessionToken | undefined {
    return this.#state.tokenToSend;
  }

  /** Whether this object ended the session. False when another request did. */
  get isDeleted(): boolean {
    return this.#state.ended === 'deleted';
  }

  /** Milliseconds since the store last renewed the session; undefined for a session that is new or never expires. */
  get idleTime(): number | undefined {
    return this.#state.idleTime;
  }

  /** An attribute for the library's own reads: undefined, never an error, when the value cannot be decoded. */
  peekAttribute(name: string): unknown {
    return this.#state.isOver ? undefined : this.#state.attributes.peek(name);
  }

  /** From now on, changes that need a cookie are refused once the headers of this response were sent. */
  bindTo(response: SessionResponse): void {
    this.#gate.response = response;
    this.#state.client = response;
  }

  /** Sets or removes the principal, under the same id. */
  setPrincipal(name: string | undefined): void {
    this.#gate.assertStartable();
    this.#state.setPrincipal(name);
  }

  /** From now on, `signOut()` also ends these: the other live sessions of the same request. */
  accompanyBy(companions: readonly SessionEnd[]): void {
    this.#companions = companions;
  }

  /** From now on, a save does not renew the idle timeout. */
  keepIdle(): void {
    this.#state.keepsIdle = true;
  }

  /** Forgets the changes that are not saved, but for a rotation. */
  discard(): void {
    this.#state.discard();
  }

  /** Forgets all changes, and takes over what was loaded later. */
  replaceBy(loaded: Session): void {
    this.#state.replaceBy(TrackedSession.of(loaded).#state);
  }

  /** From now on, `action` runs before each save, which also writes what it changes. */
  beforeSave(action: () => void): void {
    this.#state.beforeSave = action;
  }

  /** From now on, every change throws. */
  refuseChanges(refusal: Error): void {
    this.#gate.refusal = refusal;
  }

  /** What logs may show of the session. */
  toJSON(): object {
    return describeSession(this, this.shownId);
  }

  [Symbol.for('nodejs.util.inspect.custom')](): object {
    return this.toJSON();
  }
}
