import { PRINCIPAL_NAME_INDEX_NAME } from '@nest-session/core';
import type { SessionLimit, UpdateSession } from '@nest-session/core/store';
import type { SessionKeys } from '../keys/session-keys.js';
import type { ReservationRequest } from '../scripts/limits/ledger.scripts.js';

/** What the ledger needs to know of a change. */
type PlacedChange = Pick<UpdateSession, 'id' | 'newId' | 'indexes'> & {
  readonly kind: 'create' | 'update';
  readonly limit: SessionLimit;
  readonly presentedIds?: readonly string[];
};

/** What a change, such as a sign-in, asks of the ledger of its principal. */
export class PlaceRequest {
  readonly limit: SessionLimit;
  readonly id: string;
  /** The id that the session has until then; undefined: it is new. */
  readonly replaced: string | undefined;
  /** Ids that the client presented and that opened nothing. */
  readonly presentedIds: readonly string[];
  /** The latest time to store the session, as the ledger last said: epoch milliseconds. */
  latest = 0;
  /** Whether the ledger had its id before: an attempt to store it, whose reply was lost, may have succeeded. */
  wasKnown: boolean | undefined;
  readonly #joins: boolean;

  constructor(change: PlacedChange) {
    this.limit = change.limit;
    this.id = change.newId ?? change.id;
    this.replaced = change.kind === 'update' ? change.id : undefined;
    this.presentedIds = change.presentedIds ?? [];
    this.#joins = change.indexes.get(PRINCIPAL_NAME_INDEX_NAME) === change.limit.principal;
  }

  get principal(): string {
    return this.limit.principal;
  }

  index(keys: SessionKeys): string {
    return keys.index(PRINCIPAL_NAME_INDEX_NAME, this.limit.principal);
  }

  reservation(duration: number): ReservationRequest {
    const { atMost, whenReached } = this.limit;
    const { id, replaced } = this;
    return { id, replaced, atMost: this.#joins ? atMost : undefined, whenReached, duration };
  }
}
