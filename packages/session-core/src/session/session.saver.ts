import {
  type SessionBoundError,
  SessionConflictError,
  SessionGoneError,
  SessionStateError,
  SessionStoreError,
  TooManySessionsError,
} from '../errors/session.errors.js';
import {
  assertName,
  CSRF_ATTRIBUTE,
  isUninitialized,
  PRINCIPAL_ATTRIBUTE,
  isKept,
  type KeptAttributes,
} from './attribute-names.js';
import { isRotated, NOT_CREATED, NOT_ENDED, NOT_SIGNED_IN, NOT_STARTED_ANEW, REVOKED } from './gone-reasons.js';
import { fullError } from './session-bounds.js';
import {
  type AttributeChanges,
  type ContentBounds,
  type CreateSession,
  type IndexChanges,
  type SessionLimit,
  type UpdateSession,
  type WriteReply,
} from './session-change.js';
import { joined, NO_INDEXES } from './session-indexes.js';
import { limitOf } from './session-limit.js';
import { endsNow, type TimeoutChanges, timeoutChanges } from './session-timeouts.js';
import type { SessionSave, SessionWriter } from './session-writer.js';
import { PRINCIPAL_NAME_INDEX_NAME, type SaveOutcome } from './session.js';
import { signInTimeIn, type StoredSession } from './stored-session.js';
import type { UnsavedChanges } from './unsaved-changes.js';
import { updatedValue } from './updated-value.js';

// 256 random bits do not collide. The limit keeps a broken random source, or a broken store, from looping for ever.
const MAX_COLLISIONS = 3;

const NO_TIMEOUTS: TimeoutChanges = { maxInactiveInterval: undefined, absoluteTimeout: undefined };

type Update = (current: unknown) => unknown;

/** Saves the changes of one session object, one save after the other. */
export class SessionSaver {
  /** What the application says to a new session. */
  #permission: Promise<void> | undefined;
  /** A creation or rotation whose reply was lost: the store may have made it. */
  #unanswered: SessionSave | undefined;
  /** The last step, once there was one. */
  #turn: Promise<unknown> | undefined;

  constructor(
    private readonly changes: UnsavedChanges,
    private readonly stored: StoredSession,
    private readonly writer: SessionWriter,
  ) {}

  /**
   * Saves all changes.
   * @throws SessionStoreError when the store failed; TooManySessionsError when a sign-in was refused; SessionBoundError
   *   when the session would hold too much; SessionGoneError, see there
   */
  save(isBeforeResponse = false): Promise<SaveOutcome> {
    if (this.#turn)
      return this.#inTurn(
        () => this.#save(isBeforeResponse),
        (error) => this.#saveAfter(error, isBeforeResponse),
      );
    // At once, which most saves are.
    const saving = this.#save(isBeforeResponse);
    this.#turn = saving;
    return saving;
  }

  /** A save that waits for one that could not end the session shares its failure. */
  async #saveAfter(error: unknown, isBeforeResponse: boolean): Promise<SaveOutcome> {
    if (error instanceof SessionGoneError && this.changes.isInvalidated) throw error;
    return this.#save(isBeforeResponse);
  }

  /** The last save or update, done or not; undefined when there was none. */
  get last(): Promise<unknown> | undefined {
    return this.#turn;
  }

  /**
   * Compares and sets one attribute, together with what other requests make of it. @throws as `ConcurrentUpdates.run()`
   */
  updateAttribute(name: string, update: Update): Promise<SaveOutcome> {
    // In a turn: a save of this session could change the value, or the id, in between.
    return this.#inTurn(() => this.#updateAttribute(name, update));
  }

  /**
   * Gives the session a fresh token and id, which take effect at the save together with what `change` changes. Returns
   * the new id.
   */
  rotate(change?: () => void): string {
    // First, because without a token nothing may change. After a creation whose reply was lost, the store may know the
    // session already.
    const { id, token } = this.writer.drawKey(this.stored.id ?? this.#unanswered?.id);
    change?.();
    this.changes.id = id;
    this.changes.token = token;
    return id;
  }

  async #save(isBeforeResponse = false): Promise<SaveOutcome> {
    if (this.#unanswered) await this.#repeat(this.#unanswered);
    const { changes } = this;
    if (changes.beforeEnd) {
      await Promise.all(changes.beforeEnd.map((end) => end()));
      changes.beforeEnd = undefined;
    }
    if (changes.isNeverStored) return this.#endPresented();
    for (let collisions = 0; collisions < MAX_COLLISIONS; collisions++) {
      if (!changes.isOver) this.#prepare(isBeforeResponse);
      if (changes.mayBeginAnew) {
        changes.beginAnew();
        this.rotate();
      }
      if (changes.isNew && changes.response?.mayCreate) await this.#ask(changes.response.mayCreate, isBeforeResponse);
      const save = this.#nextSave();
      if (changes.failureToStart !== undefined) throw this.#goneError(changes.failureToStart);
      if (!save) return this.stored.ended === 'gone' ? 'gone' : 'saved';
      const reply = await this.#write(save);
      if (reply.outcome === 'collision') this.rotate();
      else {
        const outcome = this.#settle(save, reply);
        if (!changes.mayBeginAnew) return outcome;
      }
    }
    throw new SessionStoreError('No free session id was found: is the random source of this machine broken?');
  }

  /** Asks once whether a session that is about to be stored for the first time may be. @throws the refusal */
  async #ask(mayCreate: () => Promise<void>, isBeforeResponse: boolean): Promise<void> {
    if (this.#nextSave()?.kind === 'create') await (this.#permission ??= mayCreate());
    this.#prepare(isBeforeResponse);
  }

  #prepare(isBeforeResponse: boolean): void {
    const { changes } = this;
    if (!changes.beforeSave) return;
    changes.isBeforeResponse = isBeforeResponse;
    try {
      changes.beforeSave();
    } finally {
      changes.isBeforeResponse = false;
    }
  }

  /**
   * @throws TooManySessionsError when a sign-in was refused, SessionBoundError when the session is full, which leave
   *   all changes unsaved; SessionGoneError when the save should have started a session, or signed somebody in. Also
   *   when every session of the user was ended meanwhile, which leaves all changes unsaved
   */
  #settle(save: SessionSave, reply: WriteReply): SaveOutcome {
    if (reply.outcome === 'refused') {
      this.changes.reached('maxSessions');
      throw new TooManySessionsError(this.writer.maxSessions?.perPrincipal ?? 0);
    }
    if (reply.outcome === 'revoked') throw new SessionGoneError(REVOKED);
    if (reply.outcome === 'full' && save.kind === 'update') throw this.#full(reply.bound, save.attributes);
    const outcome = this.stored.settle(save, reply);
    if (!this.stored.ended && save.kind !== 'delete') this.changes.saved(save, signInTimeIn(reply));
    if (outcome !== 'gone' || this.changes.mayBeginAnew) return outcome;
    if (save.kind === 'delete' || (save.kind === 'update' && save.maxInactiveInterval === 0))
      this.#assertEnded([reply]);
    if (save.kind === 'create' && !isUninitialized(save.attributes.keys())) {
      const [sessionId, ...others] = save.presentedIds;
      // Of several tokens, the store does not say which one was replaced.
      this.changes.report('rotated-token', others.length > 0 ? {} : { sessionId });
      throw this.#goneError(NOT_CREATED);
    }
    if (save.kind === 'update' && save.signIn) throw this.#goneError(NOT_SIGNED_IN);
    if (save.kind === 'update' && save.clears && save.attributes.size > 0) throw this.#goneError(NOT_STARTED_ANEW);
    return outcome;
  }

  /** Ends what the tokens of a request opened until another one rotated it, so that they open nothing any more. */
  async #endPresented(): Promise<SaveOutcome> {
    const { presentedIds, reason } = this.changes;
    const ends = presentedIds.map((id) => this.writer.write({ kind: 'delete', id, reason }));
    const replies = await Promise.all(ends);
    this.changes.presentedIds = [];
    this.#assertEnded(replies);
    if (replies.some(({ outcome }) => outcome !== 'gone')) this.stored.wasEnded = true;
    return 'saved';
  }

  /** @throws SessionGoneError for an end that another principal's session was not to have */
  #assertEnded(replies: readonly WriteReply[]): void {
    this.stored.isRotated = false;
    if (replies.some(isRotated)) throw this.#goneError(NOT_ENDED);
  }

  /** The error of a save that finds the session gone. What it should have started is told only once. */
  #goneError(reason: string): SessionGoneError {
    this.changes.authentication = undefined;
    this.changes.clears = false;
    return new SessionGoneError(reason);
  }

  #full(bound: keyof ContentBounds, changes: AttributeChanges): SessionBoundError {
    this.changes.reached(bound);
    return fullError(bound, this.changes.bounds, changes);
  }

  #write(save: SessionSave): Promise<WriteReply> {
    const givesId = save.kind === 'create' || (save.kind === 'update' && save.newId !== undefined);
    this.#unanswered = givesId ? save : undefined;
    if (save.kind === 'update') this.stored.sent(save);
    const reply = this.writer.write(save);
    if (!givesId) return reply;
    return reply.then(
      (answer) => {
        this.#unanswered = undefined;
        return answer;
      },
      (error: unknown) => {
        // What the store never does is no lost reply: it would fail again, whatever has changed in the meantime.
        if (error instanceof SessionStateError) this.#unanswered = undefined;
        throw error;
      },
    );
  }

  /**
   * Sends a save whose reply was lost again, unchanged, before later changes. `collision` means that the store had made
   * it, because no other session draws the same id.
   */
  async #repeat(save: SessionSave): Promise<void> {
    const reply = await this.#write(save);
    this.#settle(save, reply.outcome === 'collision' ? { outcome: 'saved' } : reply);
  }

  async #updateAttribute(name: string, update: Update): Promise<SaveOutcome> {
    assertName(name);
    const { attributes, response, isOver } = this.changes;
    const { id, ended, attributes: stored } = this.stored;
    if (isOver || ended || id === undefined) return 'gone';
    // A value that this request set and did not save: no other request has seen it, so there is nothing to compare.
    if (attributes.isChanged(name)) {
      attributes.update(name, (current) => attributes.set(name, update(current)));
      return this.#save();
    }
    const { updates, indexes, serializer } = this.writer;
    const apply = (current: string | undefined) => {
      // A copy: if `update` throws after changing the object in place, the change must not be saved later.
      const read = () => stored.decodeText(name, current);
      const value = updatedValue(name, update, read, (each) => attributes.encode(name, each));
      const text = value === undefined ? null : attributes.encode(name, value);
      return { text, indexes: indexes.changesOf(new Map([[name, text]]), serializer) };
    };
    const known = stored.text(name);
    const result = await updates
      .run({ id, name, known, access: this.#accessOf(true), client: response, apply })
      .catch((error: unknown) => {
        if (error instanceof SessionConflictError) this.changes.reached('updateTimeout');
        throw error;
      });
    if (result.outcome === 'gone') return this.stored.gone(result.rotated);
    if (result.outcome === 'full') throw this.#full(result.bound, new Map([[name, '']]));
    attributes.refresh(name, result.text);
    return 'saved';
  }

  /** The save of all changes; undefined when there are none. */
  #nextSave(): SessionSave | undefined {
    const { id, ended } = this.stored;
    if (ended && !this.changes.endsRotated) return undefined;
    if (id === undefined) return this.#creation();
    const { isInvalidated, reason } = this.changes;
    return isInvalidated ? { kind: 'delete', id, reason } : this.#update(id);
  }

  #creation(): CreateSession | undefined {
    const { changes, writer } = this;
    if (changes.isNeverStored) return undefined;
    const attributes = changes.takeAttributes();
    if (attributes.size === 0) return undefined;
    const { id, timeouts } = changes;
    // Who signs in, or begins anew, gets a session of their own, whatever their client has presented.
    const begins = changes.signsIn || (changes.clears && !isUninitialized(attributes.keys()));
    const presentedIds = begins ? [] : changes.presentedIds;
    this.#adoptVisitorToken(attributes);
    const indexes = writer.indexes.changesOf(attributes, writer.serializer);
    const limits = { limit: this.#limitOf(indexes), begunAt: this.#begunAt(indexes), bounds: changes.bounds };
    const content = { attributes, indexes, ...limits };
    const creation = { kind: 'create', id, presentedIds, ...timeouts, device: this.#device, ...content } as const;
    return changes.signsIn ? { ...creation, signsIn: true } : creation;
  }

  /** Pages that a visitor has open stay valid when the session begins; not when somebody signs in. */
  #adoptVisitorToken(attributes: Map<string, string | null>): void {
    if (attributes.has(PRINCIPAL_ATTRIBUTE) || attributes.has(CSRF_ATTRIBUTE) || isUninitialized(attributes.keys()))
      return;
    const token = this.changes.response?.visitorToken;
    if (token === undefined) return;
    attributes.set(CSRF_ATTRIBUTE, this.writer.serializer.serialize(`${this.changes.id}:${token}`));
  }

  #update(id: string): UpdateSession | undefined {
    const { changes, writer } = this;
    const attributes = changes.takeAttributes();
    const newId = changes.id === id ? undefined : changes.id;
    if (attributes.size === 0 && newId === undefined && !changes.hasTimeouts) return undefined;
    const { authentication, clears } = changes;
    const kept = authentication?.kept;
    const isOfAttributes = newId === undefined && !changes.hasTimeouts && !authentication;
    const indexes = joined(this.#indexesToLeave(kept), writer.indexes.changesOf(attributes, writer.serializer));
    // A user may sign in with another client than the one that created the session.
    const device = kept || indexes.get(PRINCIPAL_NAME_INDEX_NAME) ? this.#device : undefined;
    return {
      kind: 'update',
      id,
      newId,
      ...this.#timeoutChanges,
      ...(authentication && (kept ? { signIn: kept } : { signsOut: true })),
      ...this.#accessOf(isOfAttributes),
      device,
      attributes,
      indexes,
      limit: this.#limitOf(indexes, newId),
      begunAt: this.#begunAt(indexes),
      ...(clears && { clears }),
      ...(changes.closes && newId !== undefined && { closes: true }),
    };
  }

  /** The parts of an update that do not depend on its values. `isOfAttributes`: whether it changes nothing else. */
  #accessOf(isOfAttributes: boolean): Pick<UpdateSession, 'keepsIdle' | 'memo' | 'bounds'> {
    const { memo } = this.stored;
    const { keepsIdle: isIdle, signsIn, isFreshUntil } = this.changes;
    // A user who signs in is there, whatever the route says.
    const keepsIdle = (isIdle && !signsIn) || (isOfAttributes && performance.now() < isFreshUntil);
    return { bounds: this.changes.bounds, ...(keepsIdle && { keepsIdle }), ...(memo && { memo }) };
  }

  get #timeoutChanges(): TimeoutChanges {
    const { timeouts, signsIn, hasTimeouts } = this.changes;
    // A sign-in sets both timeouts, whatever another request may have made of them.
    if (signsIn && !endsNow(timeouts)) return timeouts;
    return hasTimeouts ? timeoutChanges(timeouts, this.stored.knownTimeouts) : NO_TIMEOUTS;
  }

  get #device(): string | undefined {
    return this.changes.response?.device?.();
  }

  /** The indexes of the attributes that a save takes from the session. */
  #indexesToLeave(kept: KeptAttributes | undefined): IndexChanges {
    if (this.changes.clears) return this.writer.indexes.leave();
    return kept ? this.writer.indexes.leave((name) => isKept(name, kept)) : NO_INDEXES;
  }

  #limitOf(indexes: IndexChanges, newId?: string): SessionLimit | undefined {
    const { maxSessions } = this.writer;
    if (!maxSessions) return undefined;
    const principalName = newId === undefined ? undefined : this.changes.attributes.peek(PRINCIPAL_ATTRIBUTE);
    return limitOf(maxSessions, indexes, principalName);
  }

  /** When the request began that makes the session one of a principal; undefined: it does not, or is none. */
  #begunAt(indexes: IndexChanges): number | undefined {
    const principal = indexes.get(PRINCIPAL_NAME_INDEX_NAME);
    return principal ? this.changes.caller?.begunAt(principal) : undefined;
  }

  /** `afterFailure`: a step also follows one that failed. */
  #inTurn<T>(step: () => Promise<T>, afterFailure: (error: unknown) => Promise<T> = step): Promise<T> {
    const result = (this.#turn ?? Promise.resolve()).then(step, afterFailure);
    this.#turn = result;
    return result;
  }
}
