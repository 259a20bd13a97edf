import { once } from 'node:events';
import { Inject, Injectable } from '@nestjs/common';
import { type PartitionKeys, Partitions } from '../partitions/partitions.js';
import { closeConnection } from '../connection/close-connection.js';
import { PartitionSignals } from '../connection/partition-signals.js';
import { REDIS_CONNECTIONS, type RedisConnections } from '../connection/redis-connections.js';
import { EventStreamScripts, type ReadReply, type WishReply } from '../scripts/event-stream.scripts.js';
import { DELIVERY_PACE, type DeliveryPace } from '../configuration/event-rules.js';
import { eventTurns, type HeardSignals, PartitionReplies, type PartitionTurns } from './partition-turns.js';
import { EventLoader, EventProducer } from './event-producer.js';
import {
  byPosition,
  groupOf,
  isLater,
  positionOf,
  positionText,
  type StreamEntry,
  timeOf,
  toStreamEntry,
} from '../scripts/stream/stream-entry.js';
import { type BackgroundService, repeatPasses, RETRY, settledWithin } from '../timing/background-service.js';
import { FailureLog, logger } from '../logging/failure.log.js';

const BATCH_SIZE = 100;
// Milliseconds. The others need not wait for a node that is down.
const PATIENCE = 1000;
// With one partition also how late a gap can be reported when no event follows it.
const LONGEST_WAIT = 1000;
// For handlers that the application adds while it runs: what they are for may have begun before.
const HINDSIGHT = 5000;
// How long the wishes of broadcast handlers outlive their last instance.
const WISH = 86_400_000;

// A position before all events.
const NOTHING = '0-0';

interface Reading {
  readonly partition: PartitionKeys;
  position: string | undefined;
  /** Whether there was an event in the stream at this position. */
  hasRead: boolean;
  /** The position up to which it is known that events have made room for ends. */
  thinned: string;
  /** Where to continue when it is reported that unread events are gone. */
  gap: string | undefined;
}

/** Calls broadcast handlers with every event since its start, in recorded order. Reports a gap where some are gone. */
@Injectable()
export class EventBroadcaster<Event> implements BackgroundService {
  readonly #stopping = new AbortController();
  readonly #failures = new FailureLog('Broadcast events cannot be read, retrying', 'Broadcast events are read again');
  readonly #readings: ReadonlyMap<PartitionKeys, Reading>;
  /** When the application became ready: monotonic time. */
  #readyAt: number | undefined;
  #due: readonly PartitionKeys[];
  /** False from a wait for events that failed to one that succeeded: meanwhile it may read, and yet not wait. */
  #canWait = true;
  readonly #turns: PartitionTurns;
  readonly #reads = new PartitionReplies<[reading: Reading, reply: ReadReply]>(() => this.#turns.wake());
  readonly #wishes = new PartitionReplies<[reading: Reading, words: WishReply[]]>();
  #nextRenewal = 0;
  readonly #wishFailures = new FailureLog(
    'Redis could not be told that broadcast handlers want events, trying again',
    'Redis knows again that broadcast handlers want events',
  );

  constructor(
    @Inject(EventStreamScripts) private readonly scripts: EventStreamScripts,
    @Inject(EventProducer) private readonly producer: Pick<EventProducer<Event>, 'handlers' | 'kind'>,
    @Inject(EventLoader) private readonly loader: EventLoader<Event>,
    @Inject(Partitions) private readonly partitions: Partitions,
    @Inject(DELIVERY_PACE) private readonly pace: DeliveryPace,
    @Inject(REDIS_CONNECTIONS) private readonly connections: Pick<RedisConnections, 'request' | 'broadcast'>,
    @Inject(PartitionSignals) signals: HeardSignals,
  ) {
    this.#turns = eventTurns(partitions.all, signals, this.#reads.isFree);
    this.#due = partitions.all;
    const first = { position: undefined, hasRead: false, thinned: NOTHING, gap: undefined };
    this.#readings = new Map(partitions.all.map((partition) => [partition, { ...first, partition }]));
  }

  /** Resolves when it will read every event recorded from now on; at once while there are no broadcast handlers. */
  async start(): Promise<void> {
    const { handlers } = this.producer;
    if (handlers.hasBroadcastHandlers) {
      void handlers.ready().then(() => (this.#readyAt = performance.now()));
      return this.#begin();
    }
    handlers.whenBroadcastIsWanted?.(() => {
      this.#readyAt = performance.now() - HINDSIGHT;
      return this.#begin();
    });
  }

  async #begin(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    const begun = this.#look().catch(() => undefined);
    void begun.then(() => this.#run());
    // Redis may come back without the wish.
    this.connections.request.onOpen((client) => client.on('ready', () => (this.#nextRenewal = 0)));
    await begun;
  }

  stop(): void {
    this.#stopping.abort();
    this.#turns.wake();
    if (this.connections.broadcast) void closeConnection(this.connections.broadcast);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    // An application whose start fails is closed without becoming ready.
    if (!signal.aborted) await Promise.race([this.producer.handlers.ready(), once(signal, 'abort')]);
    await repeatPasses(() => this.#pass(), signal, this.#failures);
  }

  async #pass(): Promise<boolean> {
    try {
      if (this.#due.length === 0 && !this.#reads.hasNews) {
        this.#canWait = false;
        this.#due = await this.#arrivals();
        this.#canWait = true;
      }
      return (await this.#look()) && this.#canWait;
    } catch (error) {
      this.#due = this.partitions.all;
      throw error;
    }
  }

  /** Waits for a while. Resolves to partitions where there may be events that it has not read. */
  async #arrivals(): Promise<readonly PartitionKeys[]> {
    const { broadcast } = this.connections;
    const [only, another] = this.partitions.all as [PartitionKeys, PartitionKeys?];
    // Until its last read has had a reply, nobody knows what to wait for.
    if (broadcast && !another && this.#reads.isFree(only)) {
      const { position } = this.#readings.get(only)!;
      await broadcast.xread('COUNT', 1, 'BLOCK', LONGEST_WAIT, 'STREAMS', only.events, position!);
      return [only];
    }
    await this.#turns.wait(LONGEST_WAIT);
    return this.#turns.take();
  }

  /** Whether it has asked, and every partition has replied: one that failed may still be silent. */
  async #look(): Promise<boolean> {
    await this.#renewWish();
    const types = this.#wanted;
    // What has come beside the error of another partition goes first: it must not be read a second time.
    const asks = !this.#reads.hasNews;
    await this.#reads.round(asks ? this.#due : [], async (partition) => {
      const reading = this.#readings.get(partition)!;
      const { position, thinned, hasRead } = reading;
      return [reading, await this.scripts.readEvents(partition, position, BATCH_SIZE, types, thinned, hasRead)];
    });
    const [entries, more]: [StreamEntry[], PartitionKeys[]] = [[], []];
    const replies = this.#reads.take();
    for (const [reading, reply] of replies) {
      entries.push(...this.#takeOver(reading, reply));
      const [word, { length }] = reply;
      if (word === 'gap' || word === 'thinned' || length === BATCH_SIZE) more.push(reading.partition);
    }
    const hasAll = asks && this.#reads.isSettled;
    if (replies.some(([, [word]]) => word === 'gap')) {
      // Redis may have lost the wish as well. What it has not recorded since is in the same gap.
      this.#nextRenewal = 0;
      await this.#renewWish();
    }
    await this.#reportGaps();
    const stalled = await this.#deliver(entries.sort(byPosition));
    this.#due = [...new Set([...more, ...stalled, ...(asks ? [] : this.#due)])];
    return hasAll;
  }

  #takeOver(reading: Reading, [word, reply, time]: ReadReply): StreamEntry[] {
    if (word === 'read') return reply.map((entry) => toStreamEntry(reading.partition, entry));
    if (word === 'begin') this.#beginAt(reading, reply, time);
    else if (word === 'gap') Object.assign(reading, { hasRead: false, gap: reply });
    // All ends are still there, so it continues where it is.
    else Object.assign(reading, { thinned: reply, gap: reading.position });
    return [];
  }

  /** Where Redis came late, with the first one since the application was ready. */
  #beginAt(reading: Reading, last: string, time: number): void {
    const ready = this.#readyAt && ([time - Math.ceil(performance.now() - this.#readyAt), 0] as const);
    const isLate = ready && isLater(positionOf(last), ready);
    reading.position = isLate ? positionText(ready) : last;
    reading.hasRead = !isLate && last !== NOTHING;
  }

  /** Resolves to the partitions whose node did not send the data of an event in time: the rest is to be read again. */
  async #deliver(entries: readonly StreamEntry[]): Promise<ReadonlySet<PartitionKeys>> {
    const stalled = new Set<PartitionKeys>();
    for (let i = 0; i < entries.length; i += BATCH_SIZE) {
      const batch = entries.slice(i, i + BATCH_SIZE).filter(({ partition }) => !stalled.has(partition));
      const loaded = await this.#load(batch);
      for (const entry of batch) {
        if (this.#stopping.signal.aborted) return stalled;
        const load = loaded.get(entry);
        if (!load) stalled.add(entry.partition);
        if (stalled.has(entry.partition)) continue;
        const event = await load;
        if (event) await this.producer.handlers.broadcast(event);
        Object.assign(this.#readings.get(entry.partition)!, { position: entry.position, hasRead: true });
      }
    }
    return stalled;
  }

  async #load(entries: readonly StreamEntry[]): Promise<ReadonlyMap<StreamEntry, Promise<Event | undefined>>> {
    const loaded = new Map<StreamEntry, Promise<Event | undefined>>();
    const loading = entries.map(async (entry) => {
      // An event that was replayed for a group has been broadcast before.
      const load = groupOf(entry) === undefined ? this.loader.load(entry) : Promise.resolve(undefined);
      await load.catch(() => undefined);
      loaded.set(entry, load);
    });
    await settledWithin(PATIENCE, Promise.all(loading));
    return new Map(loaded);
  }

  get #wanted(): readonly string[] {
    return this.producer.handlers.wantedTypes({ broadcast: true });
  }

  /** Tells again that it wants events: some, and the data of others, are kept only as long as somebody does. */
  async #renewWish(): Promise<void> {
    if (performance.now() < this.#nextRenewal) return;
    const types = this.#wanted;
    const { onDemand } = this.producer.kind;
    const { all } = this.partitions;
    this.#nextRenewal = performance.now() + this.pace.wishRenewal;
    await this.#wishes.round(all, async (partition) => {
      const told = this.scripts.wantBroadcast(partition, types, WISH);
      return [this.#readings.get(partition)!, await told.catch((error: unknown) => this.#tellAgain(error))];
    });
    const told = this.#wishes.take();
    if (told.length === all.length && told.every(([, words]) => words.length > 0)) this.#wishFailures.succeeded();
    for (const [reading, words] of told)
      if (onDemand.some((type) => words[types.indexOf(type)] === 'begun')) reading.gap ??= reading.position;
  }

  /** A partition that cannot be told holds up no event of the others. */
  #tellAgain(error: unknown): WishReply[] {
    if (!this.#stopping.signal.aborted) this.#wishFailures.failed(error);
    this.#nextRenewal = performance.now() + RETRY;
    return [];
  }

  async #reportGaps(): Promise<void> {
    const gaps = [...this.#readings.values()].filter(({ gap }) => gap !== undefined);
    if (gaps.length === 0) return;
    const since = Math.min(...gaps.map(({ position }) => timeOf(position!)));
    for (const reading of gaps) Object.assign(reading, { position: reading.gap, gap: undefined });
    logger.warn(
      `Broadcast events recorded after ${new Date(since).toISOString()} were missed: Redis no longer has them`,
    );
    await this.producer.handlers.reportGap({ since });
  }
}
