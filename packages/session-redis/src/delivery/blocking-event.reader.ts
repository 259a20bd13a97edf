import type { Redis } from 'ioredis';
import { closeConnection } from '../connection/close-connection.js';
import type { SessionKeys } from '../keys/session-keys.js';
import type { ConsumerIdentity } from '../scripts/delivery/delivery.scripts.js';
import type { StreamReply } from '../scripts/stream/event-stream.scripts.js';
import { type StreamEntry, toStreamEntry } from './stream-entry.js';
import { UnreadEventReader } from './unread-event.reader.js';

/** Reads the stream of the only partition, and lets Redis wait for entries. */
export class BlockingEventReader extends UnreadEventReader {
  /** `client`: blocks while it waits for entries, so nothing else uses it. */
  constructor(
    private readonly client: Redis,
    private readonly partition: SessionKeys,
    private readonly member: ConsumerIdentity,
  ) {
    super();
  }

  /** `patience`: never 0, with which Redis would wait for ever. */
  async read(count: number, patience: number): Promise<StreamEntry[]> {
    const { group, consumer } = this.member;
    const { events } = this.partition;
    const args = ['GROUP', group, consumer, 'COUNT', count, 'BLOCK', patience, 'STREAMS', events, '>'] as const;
    const reply = (await this.client.xreadgroup(...args)) as [string, StreamReply[]][] | null;
    return (reply?.[0]?.[1] ?? []).map((entry) => toStreamEntry(this.partition, entry));
  }

  close(): Promise<void> {
    return closeConnection(this.client);
  }
}
