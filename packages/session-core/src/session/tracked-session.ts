import { SessionAttributeError, SessionStateError, SessionStoreError } from '../session.errors.js';
import type { AttributeSerializer } from './attribute.serializer.js';
import { indexChangesOf } from './index-changes.js';
import { RefusesProperties } from './refuses-properties.js';
import { PRINCIPAL_NAME_INDEX_NAME, type SaveOutcome, type Session } from './session.js';
import type { SessionKey, SessionToken } from './session-key.js';
import type {
  CreateSession,
  DeleteSession,
  SessionChange,
  SessionRecord,
  UpdateSession,
  WriteReply,
} from './session-record.js';
import { StoredAttributes } from './stored-attributes.js';
import { assertName, TrackedAttributes } from './tracked-attributes.js';
import { type SessionTimeouts, TrackedTimeouts } from './tracked-timeouts.js';

/** What a session has its repository do. */
type Changes = CreateSession | UpdateSession | DeleteSession;

/** What a session needs of the repository it belongs to. */
export interface SessionWriter {
  readonly serializer: AttributeSerializer;
  /** One atomic step of the store. @throws SessionStoreError when the store failed or did not answer in time */
  write(changes: SessionChange): Promise<WriteReply>;
  /** A fresh key; `replaced`: the id of the session that is to have it. */
  drawKey(replaced?: string): SessionKey;
  /** How an id is shown: one that opens the session is not. */
  shown(id: string): string;
}

// A collision of 256 random bits does not happen; a broken random source or a writer that lies must not loop for ever.
const MAX_COLLISIONS = 3;

/** The one implementation of `Session`: remembers its own changes, and has its repository write them. */
export class TrackedSession extends RefusesProperties implements Session {
  readonly #writer: SessionWriter;
  readonly #attributes: TrackedAttributes;
  readonly #timeouts: TrackedTimeouts;
  readonly #presentedIds: readonly string[];
  readonly #idleTime: number | undefined;
  #creationTime: number;
  #lastAccessedTime: number;
  #id: string;
  #token: SessionToken | undefined;
  /** The id in the store; undefined as long as it has none. */
  #storedId: string | undefined;
  #invalidated = false;
  /** How it ended in the store, as far as this object has heard: by this object, or by somebody else. */
  #ended: 'deleted' | 'gone' | undefined;
  #isHeadSent = false;
  #keepsIdle = false;
  #refusal: Error | undefined;
  /** What the store may have done without our having heard of it, when that was to give the session an id. */
  #unanswered: Changes | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  /** A session nobody has stored yet. `presentedIds`: what the client showed, and what opened nothing. */
  static create(
    writer: SessionWriter,
    timeouts: SessionTimeouts,
    presentedIds: readonly string[] = [],
  ): TrackedSession {
    const key = writer.drawKey();
    const now = Date.now();
    const times = { creationTime: now, lastAccessedTime: now, ...timeouts, timeToLive: undefined };
    const record = { id: key.id, ...times, attributes: [] };
    return new TrackedSession(writer, record, key.token, presentedIds);
  }

  /** A session that the store has. */
  static restore(writer: SessionWriter, record: SessionRecord): TrackedSession {
    return new TrackedSession(writer, record);
  }

  /** The session behind a `Session`, which has no other implementation. */
  static of(session: Session): TrackedSession {
    if (session instanceof TrackedSession) return session;
    throw new TypeError('Not a session of this library: use SessionRepository.createSession() or findById()');
  }

  private constructor(
    writer: SessionWriter,
    record: SessionRecord,
    token?: SessionToken,
    presentedIds: readonly string[] = [],
  ) {
    super();
    this.#writer = writer;
    this.#attributes = new TrackedAttributes(new StoredAttributes(record.attributes, writer.serializer));
    this.#timeouts = new TrackedTimeouts(record);
    this.#presentedIds = presentedIds;
    this.#idleTime = idleTimeOf(record);
    this.#creationTime = record.creationTime;
    this.#lastAccessedTime = record.lastAccessedTime;
    this.#id = record.id;
    this.#token = token;
    this.#storedId = token ? undefined : record.id;
  }

  get id(): string {
    return this.#id;
  }

  get isNew(): boolean {
    return this.#storedId === undefined;
  }

  get creationTime(): number {
    return this.#creationTime;
  }

  get lastAccessedTime(): number {
    return this.#lastAccessedTime;
  }

  get maxInactiveInterval(): number {
    return this.#timeouts.all.maxInactiveInterval;
  }

  set maxInactiveInterval(seconds: number) {
    this.#assertWritable();
    this.#timeouts.setMaxInactiveInterval(seconds);
  }

  get absoluteTimeout(): number {
    return this.#timeouts.all.absoluteTimeout;
  }

  set absoluteTimeout(seconds: number) {
    this.#assertWritable();
    this.#timeouts.setAbsoluteTimeout(seconds);
  }

  get principalName(): string | undefined {
    const name = this.getAttribute(PRINCIPAL_NAME_INDEX_NAME);
    return typeof name === 'string' ? name : undefined;
  }

  set principalName(name: string | undefined) {
    if (name !== undefined && (typeof name !== 'string' || name === '')) {
      throw new TypeError('principalName takes a non-empty string, or undefined to remove it');
    }
    this.setAttribute(PRINCIPAL_NAME_INDEX_NAME, name);
  }

  get attributeNames(): string[] {
    return this.#isOver ? [] : this.#attributes.names;
  }

  getAttribute<T = unknown>(name: string): T | undefined {
    return this.#isOver ? undefined : (this.#attributes.get(name) as T | undefined);
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
    this.#assertWritable();
    if (this.#isHeadSent && this.isNew) {
      throw new SessionStateError(
        'A new session cannot be started after the head of the response has been sent: its cookie could not follow. ' +
          'Set an attribute before the first byte',
      );
    }
    this.#attributes.set(name, value);
  }

  removeAttribute(name: string): void {
    this.setAttribute(name, undefined);
  }

  async updateAttribute<T = unknown>(
    name: string,
    update: (current: T | undefined) => T | undefined,
  ): Promise<T | undefined> {
    this.#assertWritable();
    assertName(name);
    if (this.isNew) {
      this.setAttribute(name, update(this.getAttribute<T>(name)));
      return this.getAttribute<T>(name);
    }
    for (;;) {
      // Read, updated and written in one turn: two updates at once of one request must not start from the same value.
      const reply = await this.#exclusively(() => this.#update(name, update));
      if (reply !== 'conflict') return reply === 'saved' ? this.getAttribute<T>(name) : undefined;
    }
  }

  changeSessionId(): string {
    this.#assertWritable();
    if (this.#isHeadSent) {
      throw new SessionStateError(
        'The id of a session cannot be changed after the head of the response has been sent: the client would lose its ' +
          'session, since no cookie can follow. Call changeSessionId() before the first byte',
      );
    }
    return this.#drawKey();
  }

  #drawKey(): string {
    // The store may know it already, by a creation that was not answered.
    const key = this.#writer.drawKey(this.#storedId ?? this.#unanswered?.id);
    this.#id = key.id;
    this.#token = key.token;
    return key.id;
  }

  invalidate(): void {
    if (this.#refusal) throw this.#refusal;
    this.#invalidated = true;
  }

  async save(): Promise<SaveOutcome> {
    return this.#exclusively(() => this.#save());
  }

  /** The id under which the store knows the session until the next save; undefined while it is new. */
  get storedId(): string | undefined {
    return this.#storedId;
  }

  /** Whether `save()` would write anything. */
  get isDirty(): boolean {
    if (this.#ended) return false;
    if (this.#invalidated) return !this.isNew;
    // Interval 0: it would be over as soon as it was stored.
    if (this.isNew) return this.maxInactiveInterval !== 0 && this.#attributes.hasChanges;
    return this.#id !== this.#storedId || this.#timeouts.hasChanges || this.#attributes.hasChanges;
  }

  /** The token that the client has to be given: that of a session created or rotated here, once it is stored. */
  get tokenToSend(): SessionToken | undefined {
    const isStored = !this.#isOver && this.#ended === undefined && this.#storedId === this.#id;
    return isStored ? this.#token : undefined;
  }

  /** Whether this object, and nobody else, has ended the session. */
  get isDeleted(): boolean {
    return this.#ended === 'deleted';
  }

  /** Whether the save gives it a principal under a token that was known before: whoever planted that has the session. */
  get signsInUnderOldToken(): boolean {
    const { principalName } = this;
    const isOther =
      principalName !== undefined && principalName !== this.#attributes.storedValue(PRINCIPAL_NAME_INDEX_NAME);
    return isOther && this.#token === undefined;
  }

  /** Milliseconds since the store last renewed the session; undefined for one that never ends or is new. */
  get idleTime(): number | undefined {
    return this.#idleTime;
  }

  /** From now on no cookie can be sent: a session that is still new takes no attributes, and no id changes. */
  closeHead(): void {
    this.#isHeadSent = true;
  }

  /** From now on what is written of a stored session does not renew it. */
  keepIdle(): void {
    this.#keepsIdle = true;
  }

  /** From now on every change of it throws. */
  refuseChanges(refusal: Error): void {
    this.#refusal = refusal;
  }

  /** What may be shown: no token and no attribute value. */
  toJSON(): object {
    const id = this.#writer.shown(this.#id);
    const { isNew, creationTime, lastAccessedTime, maxInactiveInterval, absoluteTimeout, attributeNames } = this;
    return { id, isNew, creationTime, lastAccessedTime, maxInactiveInterval, absoluteTimeout, attributeNames };
  }

  [Symbol.for('nodejs.util.inspect.custom')](): object {
    return this.toJSON();
  }

  get #isOver(): boolean {
    return this.#invalidated || this.#ended === 'deleted';
  }

  #assertWritable(): void {
    if (this.#refusal) throw this.#refusal;
    if (this.#isOver)
      throw new SessionStateError(
        'The session was invalidated in this request and takes no more changes. To keep something over a logout, remove ' +
          'what belongs to the user and call changeSessionId() instead',
      );
  }

  get #access(): Pick<UpdateSession, 'keepsIdle'> {
    return this.#keepsIdle ? { keepsIdle: true } : {};
  }

  #changes(): Changes | undefined {
    if (!this.isDirty) return undefined;
    const id = this.#storedId;
    if (id !== undefined && this.#invalidated) return { kind: 'delete', id };
    const attributes = this.#attributes.changes();
    const indexes = indexChangesOf(attributes, this.#writer.serializer);
    if (id === undefined) {
      const presentedIds = this.#presentedIds;
      return { kind: 'create', id: this.#id, presentedIds, ...this.#timeouts.all, attributes, indexes };
    }
    const newId = this.#id === id ? undefined : this.#id;
    return { kind: 'update', id, newId, ...this.#timeouts.changes(), ...this.#access, attributes, indexes };
  }

  #settle(changes: Changes, reply: WriteReply): SaveOutcome {
    if (reply.outcome === 'created') this.#creationTime = this.#lastAccessedTime = reply.creationTime;
    else if (reply.outcome !== 'saved' && reply.outcome !== 'moved') return (this.#ended = 'gone');
    if (changes.kind === 'delete' || (changes.kind === 'update' && changes.maxInactiveInterval === 0)) {
      // Under another id, it is not for this request to have the client forget its token.
      this.#ended = reply.outcome === 'moved' ? 'gone' : 'deleted';
      return this.#ended === 'gone' ? 'gone' : 'saved';
    }
    this.#storedId = (changes.kind === 'update' ? changes.newId : undefined) ?? changes.id;
    this.#timeouts.saved(changes);
    this.#attributes.saved(changes.attributes);
    return 'saved';
  }

  async #save(): Promise<SaveOutcome> {
    if (this.#unanswered) await this.#repeat(this.#unanswered);
    for (let collisions = 0; collisions < MAX_COLLISIONS; collisions++) {
      const changes = this.#changes();
      if (!changes) return this.#ended === 'gone' ? 'gone' : 'saved';
      const reply = await this.#write(changes);
      if (reply.outcome !== 'collision') return this.#settle(changes, reply);
      this.#drawKey();
    }
    throw new SessionStoreError('No free session id was found: is the random source of this machine broken?');
  }

  async #write(changes: Changes): Promise<WriteReply> {
    const givesId = changes.kind === 'create' || (changes.kind === 'update' && changes.newId !== undefined);
    this.#unanswered = givesId ? changes : undefined;
    const reply = await this.#writer.write(changes);
    this.#unanswered = undefined;
    return reply;
  }

  /**
   * As it was, before what has been set since: a store that has done it already does not look at the rest of it. That an
   * id is taken means the same, since nobody else draws it.
   */
  async #repeat(changes: Changes): Promise<void> {
    const reply = await this.#write(changes);
    this.#settle(changes, reply.outcome === 'collision' ? { outcome: 'saved' } : reply);
  }

  async #update<T>(name: string, update: (current: T | undefined) => T | undefined): Promise<SaveOutcome | 'conflict'> {
    if (this.#isOver || this.#ended || this.#storedId === undefined) return 'gone';
    // What this request has set before comes first: nobody else has seen it, so there is nothing to compare with.
    if (this.#attributes.isChanged(name)) {
      this.setAttribute(name, update(this.getAttribute<T>(name)));
      return this.#save();
    }
    // A copy: an object changed in place by an update that then fails must not be stored at the commit.
    const value = update(this.#attributes.storedValue(name) as T | undefined) ?? undefined;
    const text = value === undefined ? null : this.#attributes.encode(name, value);
    const expected = { name, text: this.#attributes.storedText(name) };
    const attributes = new Map([[name, text]]);
    const indexes = indexChangesOf(attributes, this.#writer.serializer);
    const change = { kind: 'update', id: this.#storedId, ...this.#access, attributes, indexes, expected } as const;
    const reply = await this.#writer.write(change);
    switch (reply.outcome) {
      case 'conflict':
        this.#attributes.refresh(name, reply.current);
        return 'conflict';
      case 'saved':
      case 'moved':
        this.#attributes.refresh(name, text ?? undefined);
        return 'saved';
      default:
        this.#ended = 'gone';
        return 'gone';
    }
  }

  /** One write of this object after the other: each starts from what the one before has left. */
  #exclusively<T>(step: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(step);
    this.#turn = result.catch(() => undefined);
    return result;
  }
}

/** Milliseconds since the store renewed the session, known from what is left of the time that it was given then. */
function idleTimeOf(record: SessionRecord): number | undefined {
  const { creationTime, lastAccessedTime, maxInactiveInterval, absoluteTimeout, timeToLive } = record;
  if (timeToLive === undefined) return undefined;
  const idle = maxInactiveInterval < 0 ? Infinity : maxInactiveInterval * 1000;
  const absolute = absoluteTimeout < 0 ? Infinity : creationTime + absoluteTimeout * 1000 - lastAccessedTime;
  return Math.max(0, Math.min(idle, absolute) - timeToLive);
}
