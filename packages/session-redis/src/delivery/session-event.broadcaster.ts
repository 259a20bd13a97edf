import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import type { SessionEventDispatcher } from '@nest-session/core/store';
import type { Redis } from 'ioredis';
import { BACKGROUND_STREAM_SCRIPTS, SESSION_EVENT_DISPATCHER } from '../configuration/redis-session.tokens.js';
import { InjectConnection } from '../connection/redis-connections.js';
import type { SessionKeys } from '../keys/session-keys.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import type { EventStreamScripts } from '../scripts/stream/event-stream.scripts.js';
import { SessionEventLoader } from './session-event.loader.js';
import { groupOf, type StreamEntry, toStreamEntry } from './stream-entry.js';
import { byPosition, timeOf } from './stream-position.js';
import { logger } from '../logging/redis-session.logger.js';

const BATCH_SIZE = 100;
// And so the longest until a gap is told of behind which nothing is recorded.
const LONGEST_WAIT = 1000;
const PAUSE_AFTER_ERROR = 500;

/**
 * Reads every event that is recorded from its start on, for the methods of this instance that are to hear of all of
 * them: in recorded order, one after the other. It belongs to no group, so nothing waits for it, and goes on where it
 * was after a lost connection. When events are gone that it has not read, it tells of the gap.
 */
@Injectable()
export class SessionEventBroadcaster {
  readonly #stopping = new AbortController();
  /** In each partition, that of the last event that was delivered; none until Redis has told where the stream ends. */
  readonly #positions = new Map<SessionKeys, string>();
  /** The partitions in which there may be something new. */
  #due: readonly SessionKeys[];

  constructor(
    /** Its own: it waits for events. */
    @InjectConnection('broadcast') private readonly reader: Redis,
    @Inject(BACKGROUND_STREAM_SCRIPTS) private readonly scripts: EventStreamScripts,
    @Inject(SESSION_EVENT_DISPATCHER) private readonly dispatcher: SessionEventDispatcher,
    @Inject(SessionEventLoader) private readonly loader: SessionEventLoader,
    @Inject(SessionPartitions) private readonly partitions: SessionPartitions,
  ) {
    this.#due = partitions.all;
  }

  /** Resolves when it will hear of whatever is recorded from now on; at once when there is nobody to hear of it. */
  async start(): Promise<void> {
    if (!this.dispatcher.hasBroadcastHandlers) return;
    const begun = this.#look().catch(() => undefined);
    void begun.then(() => this.#run());
    await begun;
  }

  /** No event is delivered any more. The methods that run are waited for by the dispatcher. */
  stop(): void {
    this.#stopping.abort();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    // An application that fails while it starts is closed without ever having been ready.
    if (!signal.aborted) await Promise.race([this.dispatcher.ready(), once(signal, 'abort')]);
    let failed = false;
    while (!signal.aborted) {
      try {
        await this.#pass();
        failed = false;
      } catch (error) {
        if (signal.aborted) return;
        if (!failed) logger.error(`Broadcast events cannot be read, trying again: ${String(error)}`);
        failed = true;
        this.#due = this.partitions.all;
        await pause(PAUSE_AFTER_ERROR, undefined, { signal }).catch(() => undefined);
      }
    }
  }

  async #pass(): Promise<void> {
    if (this.#due.length === 0) this.#due = await this.#wait();
    await this.#look();
  }

  /** Delivers what is new in the partitions that are due. */
  async #look(): Promise<void> {
    const entries: StreamEntry[] = [];
    const gaps = new Map<SessionKeys, string>();
    await Promise.all(
      this.#due.map(async (partition) => {
        const [word, reply] = await this.scripts.readEvents(partition, this.#positions.get(partition), BATCH_SIZE);
        if (word === 'begin') this.#positions.set(partition, reply);
        else if (word === 'gap') gaps.set(partition, reply);
        else entries.push(...reply.map((entry) => toStreamEntry(partition, entry)));
      }),
    );
    if (gaps.size > 0) await this.#skip(gaps);
    await this.#deliver(entries.sort(byPosition));
    this.#due = [];
  }

  async #deliver(entries: readonly StreamEntry[]): Promise<void> {
    for (const entry of entries) {
      if (this.#stopping.signal.aborted) return;
      // One that was replayed for a group has been broadcast before.
      const event = groupOf(entry) === undefined ? await this.loader.load(entry) : undefined;
      if (event) await this.dispatcher.broadcast(event);
      this.#positions.set(entry.partition, entry.position);
    }
  }

  async #skip(gaps: ReadonlyMap<SessionKeys, string>): Promise<void> {
    const since = Math.min(...[...gaps.keys()].map((partition) => timeOf(this.#positions.get(partition)!)));
    for (const [partition, position] of gaps) this.#positions.set(partition, position);
    logger.warn(
      `Broadcast events recorded after ${new Date(since).toISOString()} were missed: they are not in Redis any more`,
    );
    await this.dispatcher.reportGap({ since });
  }

  /** The partitions in which there is an event behind the position, as soon as there is one; after a while, all. */
  async #wait(): Promise<readonly SessionKeys[]> {
    const { all } = this.partitions;
    const streams = all.map(({ events }) => events);
    const positions = all.map((partition) => this.#positions.get(partition)!);
    const limits = ['COUNT', 1, 'BLOCK', LONGEST_WAIT] as const;
    const reply = await this.reader.xread(...limits, 'STREAMS', ...streams, ...positions);
    const keys = reply?.map(([key]) => key);
    return all.filter(({ events }) => keys?.includes(events) ?? true);
  }
}
