import type {
  CreateSession,
  SessionChange,
  SessionLimit,
  SessionRepositoryOptions,
  UpdateSession,
  WriteReply,
} from '@nest-session/core/store';
import type { Room, StoreReply } from '../scripts/session/session-arguments.js';
import type { LimitAcrossPartitions } from './limit-across-partitions.js';

/** A change that stores a session. */
type StoringChange = CreateSession | UpdateSession;

// The place of a session that belongs to no principal, as far as the request knows.
const NO_PRINCIPAL: Room = { until: Number.MAX_SAFE_INTEGER, principal: '' };

/** The writes for which the number of sessions of a principal is limited. */
export class LimitedWrites {
  /** @param acrossPartitions where the sessions are in several partitions */
  constructor(
    private readonly write: (change: StoringChange, room?: Room) => Promise<StoreReply<WriteReply>>,
    private readonly acrossPartitions: LimitAcrossPartitions | undefined,
    private readonly maxSessions: SessionRepositoryOptions['maxSessions'],
  ) {}

  /** Whether a change is one of them. */
  include(change: SessionChange): change is StoringChange {
    if (change.kind !== 'create' && change.kind !== 'update') return false;
    return change.limit !== undefined || this.#mayHavePlace(change);
  }

  /** Makes such a change, in as many steps as that takes. */
  async make(first: StoringChange): Promise<WriteReply> {
    for (let change = first; ;) {
      const reply = await this.#writeOnce(change);
      if (reply.outcome === 'unplaced') change = { ...change, limit: this.#limitOf(change, reply.principal) };
      else if (!isUnfinished(reply)) return reply;
    }
  }

  /**
   * Whether a session may have a place in a ledger that this request does not know of. Its new id must get that place.
   */
  #mayHavePlace(change: StoringChange): boolean {
    return (
      this.acrossPartitions !== undefined &&
      this.maxSessions !== undefined &&
      'newId' in change &&
      change.newId !== undefined
    );
  }

  #writeOnce(change: StoringChange): Promise<StoreReply<WriteReply>> {
    if (!this.acrossPartitions) return this.write(change);
    const { limit } = change;
    if (!limit) return this.write(change, NO_PRINCIPAL);
    return this.acrossPartitions.write({ ...change, limit }, (room) => this.write(change, room));
  }

  #limitOf({ limit }: StoringChange, principal: string): SessionLimit {
    if (limit) return { ...limit, principal };
    const { perPrincipal, whenReached } = this.maxSessions!;
    return { principal, atMost: perPrincipal, whenReached };
  }
}

function isUnfinished(reply: StoreReply<WriteReply>): reply is Exclude<StoreReply<WriteReply>, WriteReply> {
  return reply.outcome === 'again' || reply.outcome === 'late' || reply.outcome === 'unplaced';
}
