import { SessionStoreError } from '../errors/session.errors.js';
import { indexChangesOf } from './index-changes.js';
import type { WriteReply } from './session-change.js';
import type { SessionSave, SessionState } from './session-state.js';
import type { SessionWriter } from './session-writer.js';
import type { SaveOutcome } from './session.js';

// 256 random bits do not collide; a broken random source or a store that lies must not loop for ever.
const MAX_COLLISIONS = 3;

type Update = (current: unknown) => unknown;

/** Has the store write what one session object changed, one write after the other: each starts from the last one. */
export class SessionSaver {
  /** A save that gives the session an id, and that the store may have made although we never got its reply. */
  #unanswered: SessionSave | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly state: SessionState,
    private readonly writer: SessionWriter,
  ) {}

  /** Saves all changes. @throws SessionStoreError when the store failed */
  save(): Promise<SaveOutcome> {
    return this.#inTurn(() => this.#save());
  }

  /** Compares and sets one attribute until no other request is faster. */
  async updateAttribute(name: string, update: Update): Promise<SaveOutcome> {
    for (;;) {
      // Read, updated and written in one turn: two updates at once of one request must not start from the same value.
      const outcome = await this.#inTurn(() => this.#updateAttribute(name, update));
      if (outcome !== 'conflict') return outcome;
    }
  }

  /** Gives the session a fresh key, which takes effect at the save. Returns the new id. */
  rotate(): string {
    const { state } = this;
    // The store may know the session already, by a creation whose reply was lost.
    const { id, token } = this.writer.drawKey(state.storedId ?? this.#unanswered?.id);
    state.id = id;
    state.token = token;
    return id;
  }

  async #save(): Promise<SaveOutcome> {
    if (this.#unanswered) await this.#repeat(this.#unanswered);
    for (let collisions = 0; collisions < MAX_COLLISIONS; collisions++) {
      const save = this.state.nextSave();
      if (!save) return this.state.ended === 'gone' ? 'gone' : 'saved';
      const reply = await this.#write(save);
      if (reply.outcome !== 'collision') return this.state.settle(save, reply);
      this.rotate();
    }
    throw new SessionStoreError('No free session id was found: is the random source of this machine broken?');
  }

  async #write(save: SessionSave): Promise<WriteReply> {
    const givesId = save.kind === 'create' || (save.kind === 'update' && save.newId !== undefined);
    this.#unanswered = givesId ? save : undefined;
    const reply = await this.writer.write(save);
    this.#unanswered = undefined;
    return reply;
  }

  /**
   * Sends a save again as it was, before what was set since: a store that has made it ignores the rest of it. A taken id
   * means the same, since nobody else draws it.
   */
  async #repeat(save: SessionSave): Promise<void> {
    const reply = await this.#write(save);
    this.state.settle(save, reply.outcome === 'collision' ? { outcome: 'saved' } : reply);
  }

  async #updateAttribute(name: string, update: Update): Promise<SaveOutcome | 'conflict'> {
    const { attributes, storedId: id, access, ended, isOver } = this.state;
    if (isOver || ended || id === undefined) return 'gone';
    // What this request has set before comes first: nobody else has seen it, so there is nothing to compare with.
    if (attributes.isChanged(name)) {
      attributes.set(name, update(attributes.get(name)));
      return this.#save();
    }
    // A copy: an object that a failing update changed in place must not be stored at the commit.
    const value = update(attributes.storedValue(name)) ?? undefined;
    const text = value === undefined ? null : attributes.encode(name, value);
    const expected = { name, text: attributes.storedText(name) };
    const changes = new Map([[name, text]]);
    const indexes = indexChangesOf(changes, this.writer.serializer);
    const reply = await this.writer.write({ kind: 'update', id, ...access, attributes: changes, indexes, expected });
    switch (reply.outcome) {
      case 'conflict':
        attributes.refresh(name, reply.current);
        return 'conflict';
      case 'saved':
      case 'forwarded':
        attributes.refresh(name, text ?? undefined);
        return 'saved';
      default:
        return (this.state.ended = 'gone');
    }
  }

  #inTurn<T>(step: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(step);
    this.#turn = result.catch(() => undefined);
    return result;
  }
}
