import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import type { SessionEvent } from '@nest-session/core';
import type { SessionEventType } from '@nest-session/core/internal';
import type { SessionEventDispatcher } from '@nest-session/core/store';
import {
  BACKGROUND_STREAM_SCRIPTS,
  DELIVERY_PACE,
  SESSION_EVENT_DISPATCHER,
} from '../configuration/redis-session.tokens.js';
import type { SessionKeys } from '../keys/session-keys.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import { DeliveryScripts, type WishReply } from '../scripts/delivery/delivery.scripts.js';
import type { EventStreamScripts, ReadReply } from '../scripts/stream/event-stream.scripts.js';
import type { DeliveryPace } from './event-rules.js';
import { EventArrivals } from './event-arrivals.js';
import { PartitionReplies } from './partition-replies.js';
import { SessionEventLoader } from './session-event.loader.js';
import { groupOf, type StreamEntry, toStreamEntry } from './stream-entry.js';
import { byPosition, timeOf } from './stream-position.js';
import { settledWithin } from '../timing/settled-within.js';
import { FailureLog } from '../logging/failure.log.js';
import { logger } from '../logging/redis-session.logger.js';

const BATCH_SIZE = 100;
// Milliseconds. The others need not wait for a node that is down.
const PATIENCE = 1000;
const PAUSE_AFTER_ERROR = 500;
const PAUSE_AFTER_FAILED_WISH = 1000;
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
  readonly #reads = new PartitionReplies<[partition: SessionKeys, reply: ReadReply]>(() => this.arrivals.wake());
  readonly #wishes = new PartitionReplies<[partition: SessionKeys, words: WishReply[]]>();
  /** Monotonic time, which no clock step changes. */
  #nextRenewal = 0;
  readonly #wishFailures = new FailureLog(
    'Redis could not be told that broadcast handlers want events, trying again',
    'Redis knows again that broadcast handlers want events',
  );

  constructor(
    @Inject(EventArrivals) private readonly arrivals: EventArrivals,
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
    this.arrivals.close();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    // An application whose start fails is closed without becoming ready.
    if (!signal.aborted) await Promise.race([this.dispatcher.ready(), once(signal, 'abort')]);
    while (!signal.aborted) {
      try {
        // A pass that asks nothing does not tell that the partition can be read again that could not.
        if (await this.#pass()) this.#failures.succeeded();
      } catch (error) {
        if (signal.aborted) return;
        this.#failures.failed(error);
        this.#due = this.partitions.all;
        await pause(PAUSE_AFTER_ERROR, undefined, { signal }).catch(() => undefined);
      }
    }
  }

  async #pass(): Promise<boolean> {
    if (this.#due.length === 0) this.#due = await this.arrivals.wait(this.#positions, this.#reads.isFree);
    return this.#look();
  }

  /** Broadcasts the new events of the partitions that are due. Resolves to whether it has asked for any. */
  async #look(): Promise<boolean> {
    const gaps = await this.#renewWish();
    const types = this.#wanted;
    // What has come beside the error of another partition goes first: it must not be read a second time.
    const asks = !this.#reads.hasNews;
    const asked = asks ? this.#due.filter(this.#reads.isFree) : [];
    await this.#reads.round(asked, async (partition) => {
      const position = this.#positions.get(partition);
      const known = this.#thinned.get(partition) ?? NOTHING;
      return [partition, await this.scripts.readEvents(partition, position, BATCH_SIZE, types, known)];
    });
    const [entries, more]: [StreamEntry[], SessionKeys[]] = [[], []];
    for (const [partition, [word, reply]] of this.#reads.take()) {
      if (word === 'begin') this.#positions.set(partition, reply);
      else if (word === 'gap') gaps.set(partition, reply);
      else if (word === 'thinned') {
        // All ends are still there, so it continues where it is.
        this.#thinned.set(partition, reply);
        gaps.set(partition, this.#positions.get(partition)!);
      } else entries.push(...reply.map((entry) => toStreamEntry(partition, entry)));
      if (word === 'gap' || word === 'thinned' || reply.length === BATCH_SIZE) more.push(partition);
    }
    if (gaps.size > 0) await this.#skip(gaps);
    const stalled = await this.#deliver(entries.sort(byPosition));
    this.#due = [...new Set([...more, ...stalled, ...(asks ? [] : this.#due)])];
    return asks;
  }

  /** Resolves to the partitions whose node did not send the data of an event in time: the rest is to be read again. */
  async #deliver(entries: readonly StreamEntry[]): Promise<ReadonlySet<SessionKeys>> {
    const stalled = new Set<SessionKeys>();
    for (let i = 0; i < entries.length; i += BATCH_SIZE) {
      const batch = entries.slice(i, i + BATCH_SIZE).filter(({ partition }) => !stalled.has(partition));
      const loaded = await this.#load(batch);
      for (const entry of batch) {
        if (this.#stopping.signal.aborted) return stalled;
        const load = loaded.get(entry);
        if (!load) stalled.add(entry.partition);
        if (stalled.has(entry.partition)) continue;
        const event = await load;
        if (event) await this.dispatcher.broadcast(event);
        this.#positions.set(entry.partition, entry.position);
      }
    }
    return stalled;
  }

  /** The events of entries, as far as their nodes reply in time. */
  async #load(entries: readonly StreamEntry[]): Promise<ReadonlyMap<StreamEntry, Promise<SessionEvent | undefined>>> {
    const loaded = new Map<StreamEntry, Promise<SessionEvent | undefined>>();
    const loading = entries.map(async (entry) => {
      // An event that was replayed for a group has been broadcast before.
      const load = groupOf(entry) === undefined ? this.loader.load(entry) : Promise.resolve(undefined);
      await load.catch(() => undefined);
      loaded.set(entry, load);
    });
    await settledWithin(PATIENCE, Promise.all(loading));
    return new Map(loaded);
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
    const { all } = this.partitions;
    this.#nextRenewal = performance.now() + this.pace.wishRenewal;
    await this.#wishes.round(all.filter(this.#wishes.isFree), async (partition) => {
      const told = this.delivery.wantBroadcast(partition, types, WISH);
      return [partition, await told.catch((error: unknown) => this.#tellAgain(error))];
    });
    const told = this.#wishes.take();
    if (told.length === all.length && told.every(([, words]) => words.length > 0)) this.#wishFailures.succeeded();
    for (const [partition, words] of told) {
      const position = this.#positions.get(partition);
      if (words[types.indexOf('created')] === 'begun' && position !== undefined) lapsed.set(partition, position);
    }
    return lapsed;
  }

  /** A partition that cannot be told holds up no event of the others. */
  #tellAgain(error: unknown): WishReply[] {
    if (!this.#stopping.signal.aborted) this.#wishFailures.failed(error);
    this.#nextRenewal = performance.now() + PAUSE_AFTER_FAILED_WISH;
    return [];
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
}
