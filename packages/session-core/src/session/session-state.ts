import type {
  AttributeChanges,
  CreateSession,
  DeleteSession,
  IndexChanges,
  UpdateSession,
  WriteReply,
} from './session-change.js';
import type { SessionToken } from './session-token.js';
import type { SessionRecord } from './session-record.js';
import type { SessionWriter } from './session-writer.js';
import type { SaveOutcome } from './session.js';
import { type AttributesOwner, StoredAttributes } from './stored-attributes.js';
import { TrackedAttributes } from './tracked-attributes.js';
import { TrackedTimeouts } from './tracked-timeouts.js';

/** A change that a session object asks its repository to write. */
export type SessionSave = CreateSession | UpdateSession | DeleteSession;

/** The state of one session object: the changes of the application, and what the store has. */
export class SessionState {
  attributes: TrackedAttributes;
  timeouts: TrackedTimeouts;
  /** Milliseconds since the store last renewed the session; undefined for a session that never expires. */
  readonly idleTime: number | undefined;
  creationTime: number;
  authenticatedAt: number | undefined;
  lastAccessedTime: number;
  id: string;
  /** Known only for a session that was created or rotated here: the store has only the id. */
  token: SessionToken | undefined;
  /** The id in the store; undefined while the session is new. */
  storedId: string | undefined;
  isInvalidated = false;
  /** How the session ended in the store, as far as this object knows: `deleted` by this object, else `gone`. */
  ended: 'deleted' | 'gone' | undefined;
  keepsIdle = false;
  /** Runs before each save. */
  beforeSave: (() => void) | undefined;
  readonly #owner: AttributesOwner;
  /** Whether the store still has attributes that `clear()` removed here. */
  #clears = false;
  /** The attributes that the last save was made of: `clear()` and others may have replaced them during the save. */
  #written: TrackedAttributes;

  constructor(
    record: SessionRecord,
    private readonly writer: SessionWriter,
    token?: SessionToken,
    private readonly presentedIds: readonly string[] = [],
  ) {
    const { serializer, undecodable } = writer;
    this.#owner = { undecodable, shownId: () => writer.shown(record.id) };
    this.attributes = new TrackedAttributes(new StoredAttributes(record.attributes, serializer, this.#owner));
    this.#written = this.attributes;
    this.timeouts = new TrackedTimeouts(record);
    this.idleTime = idleTimeOf(record);
    this.creationTime = record.creationTime;
    this.authenticatedAt = record.authenticatedAt;
    this.lastAccessedTime = record.lastAccessedTime;
    this.id = record.id;
    this.token = token;
    this.storedId = token ? undefined : record.id;
  }

  get isNew(): boolean {
    return this.storedId === undefined;
  }

  /** Whether this object ended the session, or will end it at the save. */
  get isOver(): boolean {
    return this.isInvalidated || this.ended === 'deleted';
  }

  /** Whether there is anything to save. */
  get isDirty(): boolean {
    // What was set comes first, because it needs no encoding.
    return this.isSet || (!this.ended && !this.isNeverStored && this.attributes.hasChangedInPlace);
  }

  /** Whether there is anything to save, apart from objects that were changed in place. */
  get isSet(): boolean {
    if (this.ended || this.isNeverStored) return false;
    if (this.isInvalidated) return true;
    if (this.attributes.hasSet) return true;
    return !this.isNew && (this.id !== this.storedId || this.timeouts.hasChanges);
  }

  /** Whether it is new and ends at once. */
  get isNeverStored(): boolean {
    return this.isNew && (this.isInvalidated || this.timeouts.endNow);
  }

  /** Removes all attributes. The session must be rotated as well. */
  clear(): void {
    this.attributes = new TrackedAttributes(new StoredAttributes([], this.writer.serializer, this.#owner));
    this.#clears = true;
  }

  /** Forgets the changes that are not saved, but for a rotation. */
  discard(): void {
    this.attributes = this.attributes.asStored();
    this.timeouts = this.timeouts.asStored();
  }

  /** Forgets all changes, and takes over what was loaded later. */
  replaceBy({ attributes, timeouts, lastAccessedTime }: SessionState): void {
    this.attributes = attributes;
    this.timeouts = timeouts;
    this.lastAccessedTime = lastAccessedTime;
  }

  /** The part of a save that says whether it counts as an access. */
  get access(): Pick<UpdateSession, 'keepsIdle'> {
    return this.keepsIdle ? { keepsIdle: true } : {};
  }

  /** The save of everything that the store does not have yet; undefined when there is nothing to save. */
  nextSave(): SessionSave | undefined {
    const { storedId } = this;
    if (this.ended) return undefined;
    if (storedId === undefined) return this.#creation();
    return this.isInvalidated ? { kind: 'delete', id: storedId } : this.#update(storedId);
  }

  /** Records how the store answered a save. */
  settle(save: SessionSave, reply: WriteReply): SaveOutcome {
    const { outcome } = reply;
    if (outcome === 'gone' || outcome === 'collision' || outcome === 'conflict') return (this.ended = 'gone');
    if (outcome === 'created') this.creationTime = this.lastAccessedTime = reply.creationTime;
    if (save.kind === 'delete' || (save.kind === 'update' && save.maxInactiveInterval === 0)) {
      // After a rotation elsewhere, this request must not make the client forget its new token.
      this.ended = outcome === 'forwarded' ? 'gone' : 'deleted';
      return this.ended === 'gone' ? 'gone' : 'saved';
    }
    this.storedId = (save.kind === 'update' ? save.newId : undefined) ?? save.id;
    this.timeouts.saved(save);
    this.#written.saved(save.attributes);
    // A session that is cleared during its creation has other attributes now.
    if (this.#written === this.attributes) this.#clears = false;
    return 'saved';
  }

  #creation(): CreateSession | undefined {
    const { id, presentedIds, timeouts } = this;
    if (this.isNeverStored) return undefined;
    this.#written = this.attributes;
    const attributes = this.attributes.changes();
    if (attributes.size === 0) return undefined;
    return { kind: 'create', id, presentedIds, ...timeouts.all, attributes, indexes: this.#indexesOf(attributes) };
  }

  #update(id: string): UpdateSession | undefined {
    const { timeouts } = this;
    this.#written = this.attributes;
    const attributes = this.attributes.changes();
    const newId = this.id === id ? undefined : this.id;
    if (attributes.size === 0 && newId === undefined && !timeouts.hasChanges) return undefined;
    const indexes = this.#indexesOf(attributes);
    const update = { kind: 'update', id, newId, ...timeouts.changes(), ...this.access, attributes } as const;
    if (!this.#clears) return { ...update, indexes };
    return { ...update, clears: true, indexes: new Map([...this.writer.indexes.leave(), ...indexes]) };
  }

  #indexesOf(attributes: AttributeChanges): IndexChanges {
    return this.writer.indexes.changesOf(attributes, this.writer.serializer);
  }
}

/** Milliseconds since the store renewed the session: its full time to live, less what is left of it. */
function idleTimeOf(record: SessionRecord): number | undefined {
  const { creationTime, lastAccessedTime, maxInactiveInterval, absoluteTimeout, timeToLive } = record;
  if (timeToLive === undefined) return undefined;
  const idle = maxInactiveInterval < 0 ? Infinity : maxInactiveInterval * 1000;
  const absolute = absoluteTimeout < 0 ? Infinity : creationTime + absoluteTimeout * 1000 - lastAccessedTime;
  return Math.max(0, Math.min(idle, absolute) - timeToLive);
}
