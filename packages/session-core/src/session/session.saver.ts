import {
  type SessionBoundError,
  SessionConflictError,
  SessionGoneError,
  SessionStoreError,
  TooManySessionsError,
} from '../errors/session.errors.js';
import { fullError } from './session-bounds.js';
import { type AttributeChanges, type ContentBounds, FORWARDING_TIME, type WriteReply } from './session-change.js';
import type { SessionState } from './session-state.js';
import type { SessionSave, SessionWriter } from './session-writer.js';
import { NOT_SIGNED_IN } from './sign-in.js';
import type { SaveOutcome } from './session.js';

// 256 random bits do not collide. The limit keeps a broken random source, or a broken store, from looping for ever.
const MAX_COLLISIONS = 3;

const NOT_CREATED =
  'The session was not created: the token that the request presented was replaced less than ' +
  `${FORWARDING_TIME / 1000} s ago`;

type Update = (current: unknown) => unknown;

/** Ends a session in the store. */
export type SessionEnd = () => Promise<unknown>;

/** Writes the changes of one session object to the store, one write after the other. */
export class SessionSaver {
  /** What ends before the session does, so that a request that failed in between can be repeated. */
  beforeEnd: readonly SessionEnd[] | undefined;
  /** What the application says to a new session. */
  #permission: Promise<void> | undefined;
  /** A creation or rotation whose reply was lost: the store may have made it. */
  #unanswered: SessionSave | undefined;
  /** The last step, once there was one. */
  #turn: Promise<unknown> | undefined;

  constructor(
    private readonly state: SessionState,
    private readonly writer: SessionWriter,
  ) {}

  /**
   * Saves all changes.
   * @throws SessionStoreError when the store failed; TooManySessionsError when a sign-in was refused; SessionBoundError
   *   when the session would hold too much; SessionGoneError, see there
   */
  save(): Promise<SaveOutcome> {
    if (this.#turn) return this.#inTurn(() => this.#save());
    // At once, which most saves are.
    const saving = this.#save();
    this.#turn = saving;
    return saving;
  }

  /** Compares and sets one attribute, together with what other requests make of it. @throws as `AttributeUpdates.run()` */
  updateAttribute(name: string, update: Update): Promise<SaveOutcome> {
    // In a turn: a save of this session could change the value, or the id, in between.
    return this.#inTurn(() => this.#updateAttribute(name, update));
  }

  /** Gives the session a fresh token and id, which take effect at the save. Returns the new id. */
  rotate(): string {
    const { state } = this;
    // After a creation whose reply was lost, the store may know the session already.
    const { id, token } = this.writer.drawKey(state.storedId ?? this.#unanswered?.id);
    state.id = id;
    state.token = token;
    return id;
  }

  async #save(): Promise<SaveOutcome> {
    if (this.#unanswered) await this.#repeat(this.#unanswered);
    if (this.beforeEnd) {
      await Promise.all(this.beforeEnd.map((end) => end()));
      this.beforeEnd = undefined;
    }
    if (this.state.isNew && this.state.client?.mayCreate) await this.#ask(this.state.client.mayCreate);
    for (let collisions = 0; collisions < MAX_COLLISIONS; collisions++) {
      if (!this.state.isOver) this.state.beforeSave?.();
      const save = this.state.nextSave();
      if (!save) return this.state.ended === 'gone' ? 'gone' : 'saved';
      const reply = await this.#write(save);
      if (reply.outcome !== 'collision') return this.#settle(save, reply);
      this.rotate();
    }
    throw new SessionStoreError('No free session id was found: is the random source of this machine broken?');
  }

  /** Asks once whether a session that is about to be stored for the first time may be. @throws the refusal */
  async #ask(mayCreate: () => Promise<void>): Promise<void> {
    this.state.beforeSave?.();
    if (this.state.nextSave()?.kind === 'create') await (this.#permission ??= mayCreate());
  }

  /**
   * @throws TooManySessionsError when a sign-in was refused, SessionBoundError when the session is full, which leave all
   *   changes unsaved; SessionGoneError when the save should have started a session, or signed somebody in
   */
  #settle(save: SessionSave, reply: WriteReply): SaveOutcome {
    if (reply.outcome === 'refused') {
      this.state.reportLimit('maxSessions');
      throw new TooManySessionsError(this.writer.maxSessions?.perPrincipal ?? 0);
    }
    if (reply.outcome === 'full' && save.kind === 'update') throw this.#full(reply.bound, save.attributes);
    const outcome = this.state.settle(save, reply);
    if (outcome !== 'gone') return outcome;
    if (save.kind === 'create') {
      const [sessionId, ...others] = save.presentedIds;
      // Of several tokens, the store does not say which one was replaced.
      this.state.report('rotated-token', others.length > 0 ? {} : { sessionId });
      throw new SessionGoneError(NOT_CREATED);
    }
    if (save.kind === 'update' && save.signIn) throw new SessionGoneError(NOT_SIGNED_IN);
    return outcome;
  }

  #full(bound: keyof ContentBounds, changes: AttributeChanges): SessionBoundError {
    this.state.reportLimit(bound);
    return fullError(bound, this.writer.bounds, changes);
  }

  #write(save: SessionSave): Promise<WriteReply> {
    const givesId = save.kind === 'create' || (save.kind === 'update' && save.newId !== undefined);
    this.#unanswered = givesId ? save : undefined;
    const reply = this.writer.write(save);
    if (!givesId) return reply;
    return reply.then((answer) => {
      this.#unanswered = undefined;
      return answer;
    });
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
    const { attributes, storedId: id, access, client, ended, isOver } = this.state;
    if (isOver || ended || id === undefined) return 'gone';
    // A value that this request set and did not save: no other request has seen it, so there is nothing to compare.
    if (attributes.isChanged(name)) {
      attributes.set(name, update(attributes.get(name)));
      return this.#save();
    }
    const { updates, indexes, serializer } = this.writer;
    const apply = (current: string | undefined) => {
      // A copy: if `update` throws after changing the object in place, the change must not be saved later.
      const value = update(attributes.valueOf(name, current)) ?? undefined;
      const text = value === undefined ? null : attributes.encode(name, value);
      return { text, indexes: indexes.changesOf(new Map([[name, text]]), serializer) };
    };
    const known = attributes.storedText(name);
    const result = await updates.run({ id, name, known, access, client, apply }).catch((error: unknown) => {
      if (error instanceof SessionConflictError) this.state.reportLimit('updateTimeout');
      throw error;
    });
    if (result.outcome === 'gone') return (this.state.ended = 'gone');
    if (result.outcome === 'full') throw this.#full(result.bound, new Map([[name, '']]));
    attributes.refresh(name, result.text);
    return 'saved';
  }

  #inTurn<T>(step: () => Promise<T>): Promise<T> {
    // A step also follows one that failed.
    const result = (this.#turn ?? Promise.resolve()).then(step, step);
    this.#turn = result;
    return result;
  }
}
