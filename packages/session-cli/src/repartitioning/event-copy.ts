import type { Redis } from 'ioredis';
import {
  fieldOf,
  type GroupState,
  groupStates,
  isLater,
  merged,
  type PartitionKeys,
  type Position,
  positionOf,
  positionText,
  RETRIES_CONSUMER,
  toStreamEntry,
} from '@nest-session/redis-events/internal';
import type { SessionKeys, SessionPartitions } from '@nest-session/redis/internal';
import { VerificationScripts } from '../scripts/verification/verification.scripts.js';
import { aside, scannedKeys, streamPages } from './scanned-keys.js';

const ENTRIES_PER_CALL = 100;
const NOTHING: Position = [0, 0];

interface Entry {
  readonly from: SessionKeys;
  readonly position: Position;
  /** The fields as buffers, because a value may have any bytes. */
  readonly fields: readonly Buffer[];
  /** The session id, or the text that replaces it. */
  readonly id: string;
}

interface Copy extends Entry {
  readonly to: SessionKeys;
  readonly key: string;
  readonly at: Position;
}

/**
 * Copies events, dead letters and the state of each group under temporary names that nothing else reads, so that an
 * interrupted copy starts anew. Entries keep their order and, unless another one was added at the same time, position.
 */
export class EventCopy {
  readonly #last = new Map<string, Position>();

  constructor(
    private readonly client: Redis,
    private readonly from: SessionPartitions,
    private readonly to: SessionPartitions,
  ) {}

  async run(report: () => void): Promise<void> {
    await this.#copyEvents(report);
    await this.#copyLetters(report);
    await this.#copyNotes();
  }

  async #copyEvents(report: () => void): Promise<void> {
    const states = await groupStates((_, command) => command(this.client), this.from.all);
    const groups = states.map((state) => new GroupCopy(this.client, state));
    for (const group of groups) for (const keys of this.from.all) await group.read(keys);
    for await (const copies of this.#copies('events')) {
      for (const copy of copies) for (const group of groups) group.note(copy);
      report();
    }
    for (const group of groups) for (const keys of this.to.all) await group.write(keys, aside(keys, keys.events));
  }

  async #copyLetters(report: () => void): Promise<void> {
    for await (const _ of this.#copies('deadLetters')) report();
    const scripts = new VerificationScripts(this.client, true);
    for (const keys of this.to.all) {
      // It records each letter that is in no record.
      for await (const _ of scripts.letters(aside(keys, keys.deadLetters))) report();
    }
  }

  async #copyNotes(): Promise<void> {
    const latest = (_: string, other: string) => other;
    for (const [kind, both] of [['handlers', latest] as const, ['wanted', union] as const]) {
      const all = await this.#merged((keys) => keys[kind], both);
      if (all.size > 0) await Promise.all(this.to.all.map((keys) => this.client.hset(aside(keys, keys[kind]), all)));
    }
    const [first] = this.to.all as [SessionKeys];
    const counts = [
      ({ dropped }: SessionKeys) => dropped,
      ({ lostDeadLetters }: SessionKeys) => lostDeadLetters,
      ({ deadLetters }: SessionKeys) => `${deadLetters}:unreported`,
    ];
    for (const keyIn of counts) {
      const all = await this.#merged(keyIn, (one, other) => String(Number(one) + Number(other)));
      if (all.size > 0) await this.client.hset(aside(first, keyIn(first)), all);
    }
    for await (const wishes of scannedKeys(this.client, this.from, 'events:wanted:broadcast:*')) {
      for (const { key, name } of wishes) {
        const end = await this.client.pexpiretime(key);
        const write = (keys: SessionKeys) => this.client.set(aside(keys, `${keys.prefix}${name}`), '', 'PXAT', end);
        if (end > 0) await Promise.all(this.to.all.map(write));
      }
    }
  }

  async #merged(
    keyIn: (keys: SessionKeys) => string,
    both: (one: string, other: string) => string,
  ): Promise<Map<string, string>> {
    const all = new Map<string, string>();
    for (const hash of await Promise.all(this.from.all.map((keys) => this.client.hgetall(keyIn(keys))))) {
      for (const [name, value] of Object.entries(hash)) {
        const known = all.get(name);
        all.set(name, known === undefined ? value : both(known, value));
      }
    }
    return all;
  }

  /** Copies the entries of a stream of every partition, the oldest first, and returns them with their new places. */
  async *#copies(stream: 'events' | 'deadLetters'): AsyncGenerator<Copy[]> {
    const sources = this.from.all.map((keys) => this.#entries(keys, keys[stream]));
    let batch: Copy[] = [];
    for await (const entry of merged(sources, (one, other) => (isLater(other.position, one.position) ? -1 : 1))) {
      if (batch.push(this.#place(entry, stream)) < ENTRIES_PER_CALL) continue;
      yield this.#written(batch);
      batch = [];
    }
    yield this.#written(batch);
  }

  async #written(copies: Copy[]): Promise<Copy[]> {
    await Promise.all(copies.map(({ key, at, fields }) => this.client.xadd(key, positionText(at), ...fields)));
    return copies;
  }

  #place(entry: Entry, stream: 'events' | 'deadLetters'): Copy {
    const to = this.to.of(entry.id);
    const key = aside(to, to[stream]);
    const last = this.#last.get(key) ?? NOTHING;
    const at = isLater(entry.position, last) ? entry.position : ([last[0], last[1] + 1] as const);
    this.#last.set(key, at);
    return { ...entry, to, key, at };
  }

  async *#entries(from: SessionKeys, stream: string): AsyncGenerator<Entry, void> {
    const read = (start: string) => this.client.xrangeBuffer(stream, start, '+', 'COUNT', ENTRIES_PER_CALL);
    for await (const page of streamPages(read)) {
      for (const [name, fields] of page) {
        const entry = toStreamEntry(from, [String(name), fields.map(String)]);
        const id = fieldOf(entry, 'session') ?? from.idOfMember(fieldOf(entry, 'member') ?? '');
        yield { from, position: positionOf(String(name)), fields, id };
      }
    }
  }
}

function union(one: string, other: string): string {
  return [...new Set(`${one} ${other}`.split(' '))].filter((type) => type !== '').join(' ');
}

const PENDING_PER_CALL = 1000;

interface Pending {
  readonly deliveries: number;
  readonly record: string | undefined;
  /** When to retry it, in epoch ms. */
  readonly due: string;
}

type PendingRow = [position: string, consumer: string, idle: number, deliveries: number];

const NEVER_DELIVERED: Pending = { deliveries: 0, record: undefined, due: '0' };

interface Copies {
  read: Position;
  readonly pending: (readonly [position: Position, pending: Pending])[];
  unread: Position[];
}

class GroupCopy {
  readonly #pending = new Map<PartitionKeys, ReadonlyMap<string, Pending>>();
  readonly #copies = new Map<PartitionKeys, Copies>();
  readonly #read: ReadonlyMap<PartitionKeys, Position>;

  constructor(
    private readonly client: Redis,
    private readonly state: GroupState,
  ) {
    this.#read = new Map([...state.lastDelivered].map(([keys, position]) => [keys, positionOf(position)]));
  }

  async read(keys: PartitionKeys): Promise<void> {
    const { name } = this.state;
    if (!this.#read.has(keys)) return;
    const records = await this.client.hgetall(keys.failing(name));
    const retries = await this.client.zrange(keys.retries(name), '0', '-1', 'WITHSCORES');
    const due = new Map(retries.map((position, i) => [position, retries[i + 1]!]));
    const pending = new Map<string, Pending>();
    const read = async (start: string) =>
      (await this.client.xpending(keys.events, name, start, '+', PENDING_PER_CALL)) as PendingRow[];
    for await (const rows of streamPages(read)) {
      for (const [position, , , deliveries] of rows) {
        pending.set(position, { deliveries, record: records[position], due: due.get(position) ?? '0' });
      }
    }
    this.#pending.set(keys, pending);
  }

  /** Records the copy of an entry. Call it in the order of the copies. */
  note({ from, position, to, at }: Copy): void {
    const copies = this.#copies.get(to) ?? { read: NOTHING, pending: [], unread: [] };
    this.#copies.set(to, copies);
    if (isLater(position, this.#read.get(from) ?? NOTHING)) return void copies.unread.push(at);
    // A group reads on from one position. Unread events before that position are delivered to it as retries.
    for (const skipped of copies.unread) copies.pending.push([skipped, NEVER_DELIVERED]);
    copies.unread = [];
    copies.read = at;
    const pending = this.#pending.get(from)?.get(positionText(position));
    if (pending) copies.pending.push([at, pending]);
  }

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
