import type { SessionEventDispatcher } from '../events/session-event.dispatcher.js';
import type { SessionEvent } from '../events/session.events.js';
import type { AttributeSerializer } from '../session/attribute.serializer.js';
import { JsonAttributeSerializer } from '../session/json-attribute.serializer.js';
import { PRINCIPAL_NAME_INDEX_NAME, type SaveOutcome, type Session } from '../session/session.js';
import { SessionIds } from '../session/session-ids.js';
import { isWellFormedSessionId, type SessionKey } from '../session/session-key.js';
import type { SessionChanges, TouchReply, WriteReply } from '../session/session-record.js';
import { type SessionTimeouts, type SessionWriter, TrackedSession } from '../session/tracked-session.js';
import { IndexedSessionRepository } from './indexed-session.repository.js';
import { type Clock, MapSessionStore } from './map-session.store.js';

export interface MapSessionRepositoryOptions {
  /** Seconds; -1: sessions never expire for being unused. @default 1800 */
  readonly timeout?: number;
  /** Seconds from the creation of a session; -1: none. @default -1 */
  readonly absoluteTimeout?: number;
  /** @default hashed, of 256 random bits */
  readonly ids?: SessionIds;
  /** @default JsonAttributeSerializer */
  readonly serializer?: AttributeSerializer | undefined;
  /** @default Date */
  readonly clock?: Clock | undefined;
  /** Is told the events, in the order in which they happened; unset: nobody is. */
  readonly dispatcher?: Pick<SessionEventDispatcher, 'dispatch' | 'broadcast'>;
}

/**
 * Keeps sessions in the memory of this process: for applications of one process, and for tests. A restart loses them,
 * nothing limits their number, and an event whose handler fails is not delivered again. Otherwise it behaves as a store
 * that is shared by many nodes. Values are kept encoded, so that no two sessions share an object.
 */
export class MapSessionRepository extends IndexedSessionRepository implements SessionWriter {
  readonly serializer: AttributeSerializer;
  readonly #timeouts: SessionTimeouts;
  readonly #ids: SessionIds;
  readonly #store: MapSessionStore;
  readonly #dispatcher: MapSessionRepositoryOptions['dispatcher'];

  constructor(options: MapSessionRepositoryOptions = {}) {
    super();
    this.serializer = options.serializer ?? new JsonAttributeSerializer();
    const { timeout = 1800, absoluteTimeout = -1 } = options;
    this.#timeouts = { maxInactiveInterval: timeout, absoluteTimeout };
    this.#ids = options.ids ?? new SessionIds();
    this.#dispatcher = options.dispatcher;
    this.#store = new MapSessionStore(this.serializer, options.clock ?? Date, (event) => this.#deliver(event));
  }

  createSession(presentedId?: string): Session {
    return TrackedSession.create(this, this.#timeouts, presentedId);
  }

  async findById(id: string): Promise<Session | null> {
    const record = isWellFormedSessionId(id) ? this.#store.load(id) : undefined;
    return record ? TrackedSession.restore(this, record) : null;
  }

  save(session: Session): Promise<SaveOutcome> {
    return TrackedSession.of(session).save();
  }

  async touch(session: Session): Promise<TouchReply> {
    const { storedId } = TrackedSession.of(session);
    return storedId === undefined ? 'gone' : this.#store.touch(storedId);
  }

  async deleteById(id: string): Promise<boolean> {
    return this.#store.write({ kind: 'delete', id }).outcome === 'saved';
  }

  findByPrincipalName(name: string): Promise<Session[]> {
    return this.findByIndex(PRINCIPAL_NAME_INDEX_NAME, name);
  }

  /** Looks at every session: there is no index. */
  async findByIndex(indexName: string, value: string): Promise<Session[]> {
    if (indexName !== PRINCIPAL_NAME_INDEX_NAME) return [];
    const records = this.#store.find(({ principalName }) => principalName === value);
    return records.map((record) => TrackedSession.restore(this, record));
  }

  /** Ends the sessions that have expired, and has their events delivered. Returns how many they were. */
  async runOnce(): Promise<{ readonly expired: number }> {
    return { expired: this.#store.claimExpired() };
  }

  async write(changes: SessionChanges): Promise<WriteReply> {
    return this.#store.write(changes);
  }

  nextKey(): SessionKey {
    return this.#ids.draw();
  }

  #deliver(event: SessionEvent): void {
    // Not awaited: a handler that is slow or fails is no matter of the request. The dispatcher has logged the failure.
    this.#dispatcher?.dispatch(event).catch(() => undefined);
    // The one instance that there is hears of what every instance is to hear of.
    this.#dispatcher?.broadcast(event).catch(() => undefined);
  }
}
