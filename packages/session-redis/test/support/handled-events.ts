import type { PartitionKeys } from '../../src/partitions/partition-keys.js';
import { DeliveryScripts } from '../../src/scripts/delivery/delivery.scripts.js';
import { toStreamEntry } from '../../src/scripts/stream/stream-entry.js';
import { SESSION_ENTRIES } from './event-scripts.js';
import { DEAD_LETTERS, MINUTE, RETENTION, type Store } from './store.fixture.js';

/** What has become of an event: nobody has read it, an instance has it, it waits for a retry, or it is a dead letter. */
export const FATES = ['unread', 'pending', 'retry', 'dead'] as const;
export type Fate = (typeof FATES)[number];

const RULES = { firstBackOff: MINUTE, longestBackOff: MINUTE, retention: RETENTION, deadLetters: DEAD_LETTERS };

/** A group that handles events by the scripts of the delivery, without an instance that runs. */
export class HandlingGroup {
  readonly #scripts: DeliveryScripts;
  readonly #self: { readonly group: string; readonly consumer: string };

  private constructor(
    private readonly store: Store,
    group: string,
  ) {
    this.#scripts = new DeliveryScripts(store.client, SESSION_ENTRIES);
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
    const position = await client.xadd(events, '*', ...Object.entries(fields).flat());
    if (fate === 'unread') return;
    const { group, consumer } = this.#self;
    await client.xreadgroup('GROUP', group, consumer, 'STREAMS', events, '>');
    if (fate === 'pending') return;
    const entry = toStreamEntry(partition, [position!, Object.entries(fields).flat()]);
    const failure = { done: [], reason: 'no mail', attempts: fate === 'dead' ? 1 : 9, handler: 'Reminders.mail' };
    expect(await this.#scripts.fail(entry, this.#self, failure, RULES)).toBe(fate);
    if (fate === 'dead') await client.xdel(events, position!);
  }

  /** The group has read up to the last event that is there. */
  async readOn(): Promise<void> {
    for (const { events } of this.store.partitions.all) {
      const [last] = await this.store.client.xrevrange(events, '+', '-', 'COUNT', 1);
      await this.store.client.xgroup('SETID', events, this.#self.group, last ? last[0] : '0-0');
    }
  }
}
