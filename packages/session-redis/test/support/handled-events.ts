import type { PartitionKeys } from '../../../redis-events/src/partitions/partitions.js';
import {
  EventStreamScripts,
  type EntryFailure,
  type FailReply,
} from '../../../redis-events/src/scripts/event-stream.scripts.js';
import {
  type StreamEntry,
  type StreamReply,
  toStreamEntry,
} from '../../../redis-events/src/scripts/stream/stream-entry.js';
import { SESSION_ENTRIES } from './event-scripts.js';
import { DEAD_LETTERS, MINUTE, RETENTION, type Store } from './store.fixture.js';

/** What becomes of an event: nobody has read it, an instance has it, it waits for a retry, or it is a dead letter. */
export const FATES = ['unread', 'pending', 'retry', 'dead'] as const;
export type Fate = (typeof FATES)[number];

const RULES = { firstBackOff: MINUTE, longestBackOff: MINUTE, retention: RETENTION, deadLetters: DEAD_LETTERS };

/** A group that handles events by the scripts of the delivery, without an instance that runs. */
export class HandlingGroup {
  readonly #scripts: EventStreamScripts;
  readonly #self: { readonly group: string; readonly consumer: string };

  private constructor(
    private readonly store: Store,
    group: string,
  ) {
    this.#scripts = new EventStreamScripts(store.client, SESSION_ENTRIES);
    this.#self = { group, consumer: 'host:1' };
  }

  /** One that has read everything. */
  static async create(store: Store, group = 'default'): Promise<HandlingGroup> {
    for (const { events } of store.partitions.all) {
      await store.client.xgroup('CREATE', events, group, '$', 'MKSTREAM');
      await store.client.xgroup('CREATECONSUMER', events, group, 'host:1');
      await store.client.xgroup('CREATECONSUMER', events, group, 'retries');
    }
    return new HandlingGroup(store, group);
  }

  /** Records an event that meets with this fate. Of a dead letter the event is gone. */
  async record(partition: PartitionKeys, fields: Readonly<Record<string, string>>, fate: Fate): Promise<void> {
    const { client } = this.store;
    const { events } = partition;
    const entry = Object.entries(fields).flat();
    const position = (await client.xadd(events, '*', ...entry))!;
    if (fate === 'unread') return;
    // Not by reading, which would take what is unread as well.
    const { group, consumer } = this.#self;
    await client.xclaim(events, group, consumer, 0, position, 'FORCE');
    if (fate === 'pending') return;
    const failing = toStreamEntry(partition, [position, entry]);
    expect(await this.fail(failing, { attempts: fate === 'dead' ? 1 : 9 })).toBe(fate);
    if (fate === 'dead') await client.xdel(events, position);
  }

  /** Reads the next event. */
  async read(partition: PartitionKeys): Promise<StreamEntry> {
    const { group, consumer } = this.#self;
    const args = ['GROUP', group, consumer, 'COUNT', 1, 'STREAMS', partition.events, '>'] as const;
    const [[, [entry]]] = (await this.store.client.xreadgroup(...args)) as unknown as [[string, [StreamReply]]];
    return toStreamEntry(partition, entry);
  }

  /** Handlers of an event fail that it has read. */
  fail(entry: StreamEntry, failure: Partial<EntryFailure> = {}): Promise<FailReply> {
    const usual = { done: [], reason: 'no mail', attempts: 1, handler: 'Reminders.mail' };
    return this.#scripts.fail(entry, this.#self, { ...usual, ...failure }, RULES);
  }
}
