import type { Redis } from 'ioredis';
import { isReply } from '../connection/reply.errors.js';
import { loadScript } from '../scripts/script.loader.js';
import type { StreamEntry } from './session-event.mapper.js';

const REMOVE_CONSUMER = loadScript('remove-consumer');

/** One instance's membership in a group of the events stream: each entry goes to one of the group's instances. */
export class SessionEventGroup {
  /** Where the next look for entries to take over begins: entries that fail again and again must not hide the others. */
  #cursor = '0-0';

  constructor(
    /** Waits for entries, and is used for nothing else meanwhile. */
    private readonly reader: Redis,
    private readonly background: Redis,
    private readonly stream: string,
    private readonly name: string,
    /** The name of this instance, unique. */
    private readonly consumer: string,
  ) {}

  /** Creates the group if there is none, at the beginning: nothing recorded before it is missed. */
  async ensure(): Promise<void> {
    try {
      await this.background.xgroup('CREATE', this.stream, this.name, '0', 'MKSTREAM');
    } catch (error) {
      if (!isReply(error, 'BUSYGROUP')) throw error;
    }
  }

  /** Up to `count` entries nobody has had; waits up to `patience` milliseconds for the first. */
  async read(count: number, patience: number): Promise<StreamEntry[]> {
    try {
      const reply = await this.reader.xreadgroup(
        ...([
          'GROUP',
          this.name,
          this.consumer,
          'COUNT',
          count,
          'BLOCK',
          patience,
          'STREAMS',
          this.stream,
          '>',
        ] as const),
      );
      const [stream] = (reply ?? []) as [key: string, entries: StreamEntry[]][];
      return stream?.[1] ?? [];
    } catch (error) {
      // The stream was deleted, or Redis restarted without it.
      if (!isReply(error, 'NOGROUP')) throw error;
      await this.ensure();
      return [];
    }
  }

  /** Up to `count` entries that an instance, this one included, was given `lease` milliseconds ago and never finished. */
  async takeOver(count: number, lease: number): Promise<StreamEntry[]> {
    try {
      const [cursor, entries] = (await this.background.xautoclaim(
        ...([this.stream, this.name, this.consumer, lease, this.#cursor, 'COUNT', count] as const),
      )) as [cursor: string, entries: (StreamEntry | null)[]];
      this.#cursor = cursor;
      return entries.filter((entry) => entry !== null);
    } catch (error) {
      if (!isReply(error, 'NOGROUP')) throw error;
      await this.ensure();
      return [];
    }
  }

  async acknowledge(entry: StreamEntry): Promise<void> {
    await this.background.xack(this.stream, this.name, entry[0]);
  }

  /** Leaves the group; stays a member, to be taken over from, while entries are pending with it. */
  async leave(): Promise<void> {
    await this.background.eval(REMOVE_CONSUMER, 1, this.stream, this.name, this.consumer);
  }
}
