import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import type { SessionEventType } from '@nest-session/core';
import type { SessionEventDispatcher } from '@nest-session/core/store';
import type { Redis } from 'ioredis';
import {
  BACKGROUND_STREAM_SCRIPTS,
  DELIVERY_PACE,
  SESSION_EVENT_DISPATCHER,
} from '../configuration/redis-session.tokens.js';
import { readStreams } from '../connection/read-streams.js';
import { InjectConnection } from '../connection/redis-connections.js';
import type { SessionKeys } from '../keys/session-keys.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import { DeliveryScripts } from '../scripts/delivery/delivery.scripts.js';
import type { EventStreamScripts } from '../scripts/stream/event-stream.scripts.js';
import type { DeliveryPace } from './event-rules.js';
import { SessionEventLoader } from './session-event.loader.js';
import { groupOf, type StreamEntry, toStreamEntry } from './stream-entry.js';
import { byPosition, timeOf } from './stream-position.js';
import { FailureLog } from '../logging/failure.log.js';
import { logger } from '../logging/redis-session.logger.js';

const BATCH_SIZE = 100;
// Milliseconds. Also how late a gap can be reported when no event follows it.
const LONGEST_WAIT = 1000;
const PAUSE_AFTER_ERROR = 500;
// How long the wishes of broadcast handlers outlive their last instance.
const WISH = 86_400_000;

// A position before all events.
const NOTHING = '0-0';

/**
 * Reads every event that is recorded after its start and calls the broadcast handlers of this instance: in recorded
 * order, one event after the other. It is in no group, so no event is kept for it. After an outage it continues where
 * it was. When unread events are gone, it reports a gap.
 */
@Injectable()
export class SessionEventBroadcaster {
  readonly #stopping = new AbortController();
  readonly #failures = new FailureLog('Broadcast events cannot be read, retrying', 'Broadcast events are read again');

  /** In each partition, the position of the last event that was broadcast; empty until the first read. */
  readonly #positions = new Map<SessionKeys, string>();
  /** In each partition, the position up to which it is known that events have made room for ends. */
  readonly #thinned = new Map<SessionKeys, string>();
  /** The partitions that may have new events. */
  #due: readonly SessionKeys[];
  /** Monotonic time, which no clock step changes. */
  #nextRenewal = 0;

  constructor(
    /** Blocks while it waits for events, so nothing else uses it. */
    @InjectConnection('broadcast') private readonly reader: Redis,
    @Inject(BACKGROUND_STREAM_SCRIPTS) private readonly scripts: EventStreamScripts,
    @Inject(SESSION_EVENT_DISPATCHER) private readonly dispatcher: SessionEventDispatcher,
    @Inject(SessionEventLoader) private readonly loader: SessionEventLoader,
    @Inject(SessionPartitions) private readonly partitions: SessionPartitions,
    @Inject(DeliveryScripts) private readonly delivery: DeliveryScripts,
    @Inject(DELIVERY_PACE) private readonly pace: DeliveryPace,
  ) {
    this.#due = partitions.all;
  }

  /** Resolves when it will read every event recorded from now on; at once when there are no broadcast handlers. */
  async start(): Promise<void> {
    if (!this.dispatcher.hasBroadcastHandlers) return;
    const begun = this.#look().catch(() => undefined);
    void begun.then(() => this.#run());
    await begun;
  }

  /** Broadcasts no more events. The dispatcher waits for the handlers that run. */
  stop(): void {
    this.#stopping.abort();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    // An application whose start fails is closed without becoming ready.
    if (!signal.aborted) await Promise.race([this.dispatcher.ready(), once(signal, 'abort')]);
    while (!signal.aborted) {
      try {
        await this.#pass();
        this.#failures.succeeded();
      } catch (error) {
        if (signal.aborted) return;
        this.#failures.failed(error);
        this.#due = this.partitions.all;
        await pause(PAUSE_AFTER_ERROR, undefined, { signal }).catch(() => undefined);
      }
    }
  }

  async #pass(): Promise<void> {
    if (this.#due.length === 0) this.#due = await this.#wait();
    await this.#look();
  }

  /** Broadcasts the new events of the partitions that are due. */
  async #look(): Promise<void> {
    const entries: StreamEntry[] = [];
    const gaps = await this.#renewWish();
    const types = this.#wanted;
    await Promise.all(
      this.#due.map(async (partition) => {
        const position = this.#positions.get(partition);
        const known = this.#thinned.get(partition) ?? NOTHING;
        const [word, reply] = await this.scripts.readEvents(partition, position, BATCH_SIZE, types, known);
        if (word === 'begin') this.#positions.set(partition, reply);
        else if (word === 'gap') gaps.set(partition, reply);
        else if (word === 'thinned') {
          // All ends are still there, so it continues where it is.
          this.#thinned.set(partition, reply);
          gaps.set(partition, position!);
        } else entries.push(...reply.map((entry) => toStreamEntry(partition, entry)));
      }),
    );
    if (gaps.size > 0) await this.#skip(gaps);
    await this.#deliver(entries.sort(byPosition));
    this.#due = [];
  }

  async #deliver(entries: readonly StreamEntry[]): Promise<void> {
    for (const entry of entries) {
      if (this.#stopping.signal.aborted) return;
      // An event that was replayed for a group has been broadcast before.
      const event = groupOf(entry) === undefined ? await this.loader.load(entry) : undefined;
      if (event) await this.dispatcher.broadcast(event);
      this.#positions.set(entry.partition, entry.position);
    }
  }

  get #wanted(): readonly SessionEventType[] {
    return this.dispatcher.wantedTypes({ broadcast: true });
  }

  /**
   * `created` events are recorded, and the data of ended sessions is kept, as long as an instance wants them: this one
   * tells again that it does. Returns the partitions that may not have recorded `created` events, with the position
   * there.
   */
  async #renewWish(): Promise<Map<SessionKeys, string>> {
    const lapsed = new Map<SessionKeys, string>();
    if (performance.now() < this.#nextRenewal) return lapsed;
    const types = this.#wanted;
    await Promise.all(
      this.partitions.all.map(async (partition) => {
        const words = await this.delivery.wantBroadcast(partition, types, WISH);
        const position = this.#positions.get(partition);
        if (words[types.indexOf('created')] === 'begun' && position !== undefined) lapsed.set(partition, position);
      }),
    );
    this.#nextRenewal = performance.now() + this.pace.wishRenewal;
    return lapsed;
  }

  async #skip(gaps: ReadonlyMap<SessionKeys, string>): Promise<void> {
    const since = Math.min(...[...gaps.keys()].map((partition) => timeOf(this.#positions.get(partition)!)));
    for (const [partition, position] of gaps) this.#positions.set(partition, position);
    logger.warn(
      `Broadcast events recorded after ${new Date(since).toISOString()} were missed: Redis no longer has them. ` +
        'Methods with @OnSessionEventGap are called',
    );
    await this.dispatcher.reportGap({ since });
  }

  /** Waits for new events, and resolves to the partitions that have some; after LONGEST_WAIT, to all. */
  async #wait(): Promise<readonly SessionKeys[]> {
    const { all } = this.partitions;
    const found = await readStreams(this.reader, all, LONGEST_WAIT, (some, wait) => {
      const streams = some.map(({ events }) => events);
      const positions = some.map((partition) => this.#positions.get(partition)!);
      const block = wait === undefined ? [] : (['BLOCK', wait] as const);
      const args = ['COUNT', 1, ...block, 'STREAMS', ...streams, ...positions];
      return this.reader.xread(...(args as unknown as Parameters<Redis['xread']>));
    });
    const keys = found.map(([key]) => key);
    return keys.length === 0 ? all : all.filter(({ events }) => keys.includes(events));
  }
}
