import type { SessionEventDispatcher } from '../events/session-event.dispatcher.js';
import type { SessionEvent } from '../events/session.events.js';
import { JsonAttributeSerializer } from '../session/json-attribute.serializer.js';
import type { SessionChange, WriteReply } from '../session/session-change.js';
import type { SessionRecord } from '../session/session-record.js';
import { PRINCIPAL_NAME_INDEX_NAME } from '../session/session.js';
import { IndexedSessionRepository } from '../repository/indexed-session.repository.js';
import { type Clock, MapSessionStore } from './map-session.store.js';
import type { SessionRepositoryOptions } from '../repository/session.repository.js';

export interface MapSessionRepositoryOptions extends SessionRepositoryOptions {
  /** @default Date */
  readonly clock?: Clock | undefined;
  /** Receives the events in the order in which they happened; unset: no events are delivered. */
  readonly dispatcher?: Pick<SessionEventDispatcher, 'dispatch' | 'broadcast'>;
}

/**
 * Keeps sessions in the memory of this process, for applications of one process and for tests. A restart loses the
 * sessions, their number is not limited, and an event whose handler fails is not retried. Otherwise it behaves like a
 * store that many instances share. Values are kept encoded, so that no two sessions share an object.
 */
export class MapSessionRepository extends IndexedSessionRepository {
  readonly #store: MapSessionStore;
  readonly #dispatcher: MapSessionRepositoryOptions['dispatcher'];
  readonly #clock: Clock;

  constructor(options: MapSessionRepositoryOptions = {}) {
    super(options);
    const { serializer = new JsonAttributeSerializer(), clock = Date, ids } = options;
    this.#dispatcher = options.dispatcher;
    this.#clock = clock;
    this.#store = new MapSessionStore(serializer, clock, (event) => this.#deliver(event), ids);
  }

  /** When the next session expires, in epoch milliseconds; Infinity when none does. */
  get nextExpiry(): number {
    return this.#store.nextExpiry;
  }

  /** Ends the sessions that have expired and delivers their events. `expired` is their number. */
  async endExpired(): Promise<{ readonly expired: number }> {
    return { expired: this.#store.claimExpired() };
  }

  protected override async readClock(): Promise<number> {
    return this.#clock.now();
  }

  protected async load(ids: readonly string[]): Promise<SessionRecord[]> {
    return ids.map((id) => this.#store.load(id)).filter((record) => record !== undefined);
  }

  protected async write(change: SessionChange): Promise<WriteReply> {
    return this.#store.write(change);
  }

  protected async lookUp(indexName: string, value: string): Promise<SessionRecord[]> {
    return this.#store.lookUp(indexName, value);
  }

  protected override endListed(indexName: string, value: string, except: readonly string[]): Promise<number> {
    if (indexName === PRINCIPAL_NAME_INDEX_NAME) this.#store.revoke(value);
    return super.endListed(indexName, value, except);
  }

  protected override async endEvery(): Promise<void> {
    this.#store.endAll();
  }

  #deliver(event: SessionEvent): void {
    // Not awaited, because a slow or failing handler must not affect the request. The dispatcher logs the failure.
    this.#dispatcher?.dispatch(event).catch(() => undefined);
    // Broadcast events are for every instance, and this is the only one.
    this.#dispatcher?.broadcast(event).catch(() => undefined);
  }
}
