import type { Redis } from 'ioredis';
import {
  type GroupState,
  isLater,
  type PartitionKeys,
  type Position,
  positionOf,
  positionText,
  RETRIES_CONSUMER,
} from '@nest-session/redis-events/internal';
import { aside } from './scanned-keys.js';

const NOTHING: Position = [0, 0];
const PENDING_PER_CALL = 1000;

/** An event that a group has begun to handle, or has to handle although it has already handled later ones. */
interface Pending {
  readonly deliveries: number;
  /** The record of its failures, as JSON. */
  readonly record: string | undefined;
  /** When to retry it, in epoch ms. */
  readonly due: string;
}

const NEVER_DELIVERED: Pending = { deliveries: 0, record: undefined, due: '0' };

/** The copies in a partition that a group has to know of. */
interface Copies {
  read: Position;
  readonly pending: (readonly [position: Position, pending: Pending])[];
  /** The copies that it has not read. */
  unread: Position[];
}

/**
 * Copies a group, with its state of the events of each partition, to the copies of these events in other partitions.
 */
export class GroupCopy {
  /** The pending events by partition and position. */
  readonly #pending = new Map<PartitionKeys, ReadonlyMap<string, Pending>>();
  readonly #copies = new Map<PartitionKeys, Copies>();
  readonly #read: ReadonlyMap<PartitionKeys, Position>;

  constructor(
    private readonly client: Redis,
    private readonly state: GroupState,
  ) {
    this.#read = new Map([...state.lastDelivered].map(([keys, position]) => [keys, positionOf(position)]));
  }

  /** Reads the events of a partition that the group has begun to handle. */
  async read(keys: PartitionKeys): Promise<void> {
    const { name } = this.state;
    if (!this.#read.has(keys)) return;
    const records = await this.client.hgetall(keys.failing(name));
    const retries = await this.client.zrange(keys.retries(name), '0', '-1', 'WITHSCORES');
    const due = new Map(retries.map((position, i) => [position, retries[i + 1]!]));
    const pending = new Map<string, Pending>();
    for (let start = '-'; ;) {
      const rows = await this.client.xpending(keys.events, name, start, '+', PENDING_PER_CALL);
      for (const [position, , , deliveries] of rows as [string, string, number, number][]) {
        pending.set(position, { deliveries, record: records[position], due: due.get(position) ?? '0' });
        start = `(${position}`;
      }
      if (rows.length < PENDING_PER_CALL) break;
    }
    this.#pending.set(keys, pending);
  }

  /** Records the copy of an entry. Call it in the order of the copies. */
  note(entry: { readonly from: PartitionKeys; readonly position: Position }, to: PartitionKeys, at: Position): void {
    const copies = this.#copies.get(to) ?? { read: NOTHING, pending: [], unread: [] };
    this.#copies.set(to, copies);
    if (isLater(entry.position, this.#read.get(entry.from) ?? NOTHING)) return void copies.unread.push(at);
    // A group reads on from one position. Unread events before that position are delivered to it as retries.
    for (const skipped of copies.unread) copies.pending.push([skipped, NEVER_DELIVERED]);
    copies.unread = [];
    copies.read = at;
    const pending = this.#pending.get(entry.from)?.get(positionText(entry.position));
    if (pending) copies.pending.push([at, pending]);
  }

  /** Creates the group in a partition whose events have been copied to a stream. */
  async write(keys: PartitionKeys, stream: string): Promise<void> {
    const { name } = this.state;
    const { read, pending } = this.#copies.get(keys) ?? { read: NOTHING, pending: [] };
    await this.client.xgroup('CREATE', stream, name, positionText(read), 'MKSTREAM');
    for (const [at, { deliveries, record, due }] of pending) {
      const position = positionText(at);
      const options = ['RETRYCOUNT', deliveries, 'FORCE', 'JUSTID'] as const;
      await Promise.all([
        this.client.xclaim(stream, name, RETRIES_CONSUMER, 0, position, ...options),
        this.client.zadd(aside(keys, keys.retries(name)), due, position),
        record !== undefined && this.client.hset(aside(keys, keys.failing(name)), position, record),
      ]);
    }
  }
}
