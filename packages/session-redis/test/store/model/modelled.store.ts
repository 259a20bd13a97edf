import { JsonAttributeSerializer, MapSessionRepository, type SessionEvent } from '@nest-session/core';
import type { SessionChange, SessionRecord, WriteReply } from '@nest-session/core/store';
import { ManualClock } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { RequestConnection } from '../../../src/connection/request.connection.js';
import { SessionEventLoader } from '../../../src/delivery/session-event.loader.js';
import { toStreamEntry } from '../../../src/delivery/stream-entry.js';
import { SessionExpirationSweeper } from '../../../src/expiration/session-expiration.sweeper.js';
import type { SessionKeys } from '../../../src/keys/session-keys.js';
import { RedisSessionRepository } from '../../../src/repository/redis-session.repository.js';
import { SessionScripts } from '../../../src/scripts/session/session.scripts.js';
import type { StreamReply } from '../../../src/scripts/stream/event-stream.scripts.js';
import { BackgroundLimiter } from '../../../src/timing/background.limiter.js';
import { GRACE, KEEPING_RULES, MINUTE, type SteppableStore, Store } from '../../support/store.fixture.js';
import type { StoreTraits } from './session.model.js';
import { intercepted, type Turns } from './store.turns.js';

/** The calls of a repository to its store. */
interface StoreSteps {
  load(ids: readonly string[]): Promise<readonly SessionRecord[]>;
  write(change: SessionChange): Promise<WriteReply>;
  lookUp(indexName: string, value: string): Promise<readonly SessionRecord[]>;
}

/** One of the instances of an application that share a store. */
export interface Node {
  readonly steps: StoreSteps;
  /** Whether the reply to a change may be lost. */
  readonly losesReplies: boolean;
  mayReplace(id: string, replaced: string): boolean;
  /** Reports the sessions that have ended, or will have in `ahead` milliseconds. */
  sweep(ahead: number): Promise<unknown>;
  /** Receives key events of these sessions. */
  hearOf(ids: readonly string[]): Promise<unknown>;
}

/** A store of which each step waits for its turn, and whose clock the test steps. */
export interface ModelledStore {
  readonly traits: StoreTraits;
  readonly nodes: readonly Node[];
  /** Deletes everything. */
  clear(): Promise<void>;
  /** Epoch milliseconds. */
  now(): Promise<number>;
  advance(ms: number): Promise<void>;
  /** The events recorded since the last call. */
  recorded(): Promise<SessionEvent[]>;
  /** All keys except the data of ended sessions and the events. */
  leftovers(): Promise<string[]>;
  close(): Promise<void>;
}

export class ModelledMapStore implements ModelledStore {
  readonly traits = { lag: 0, grace: Infinity, foundFrom: (end: number) => end };
  readonly #clock = new ManualClock();
  #events: SessionEvent[] = [];
  #repository = this.#empty();

  constructor(private readonly turns: Turns) {}

  get nodes(): readonly Node[] {
    const steps = this.turns.taking(this.#repository);
    // It needs no key event.
    return [
      {
        steps,
        losesReplies: false,
        mayReplace: () => true,
        sweep: () => steps.endExpired(),
        hearOf: () => steps.endExpired(),
      },
    ];
  }

  async clear(): Promise<void> {
    this.#repository = this.#empty();
  }

  async now(): Promise<number> {
    return this.#clock.now();
  }

  async advance(ms: number): Promise<void> {
    this.#clock.advance(ms);
  }

  async recorded(): Promise<SessionEvent[]> {
    return this.#events.splice(0);
  }

  async leftovers(): Promise<string[]> {
    return [];
  }

  async close(): Promise<void> {}

  #empty(): OpenMapRepository {
    // Its own stream: a failed sequence leaves events that were not read.
    const events: SessionEvent[] = [];
    this.#events = events;
    const dispatch = async (event: SessionEvent) => void events.push(event);
    return new OpenMapRepository({ clock: this.#clock, dispatcher: { dispatch, broadcast: async () => {} } });
  }
}

// So few that a sweep often takes several steps.
const BATCH_SIZE = 2;

// Longer than any sequence takes.
const RETENTION = 10 * 24 * 60 * MINUTE;

export class ModelledRedisStore implements ModelledStore {
  readonly traits = {
    lag: 1,
    grace: GRACE,
    foundFrom: (end: number) => Math.floor((end + MINUTE) / MINUTE) * MINUTE,
  };
  readonly nodes: readonly Node[];
  /** The position of the last event of each stream. */
  readonly #read = new Map<string, string>();
  readonly #events: SessionEventLoader;
  /** Whether a script has been called since the events were read: nothing else records any. */
  #mayHaveRecorded = false;

  private constructor(
    private readonly store: SteppableStore,
    private readonly clients: readonly Redis[],
    turns: Turns,
  ) {
    this.#events = new SessionEventLoader(store.client, { serializer: new JsonAttributeSerializer() });
    this.nodes = clients.map((client) => this.#nodeOf(client, turns));
  }

  static async open(turns: Turns, partitions: number): Promise<ModelledRedisStore> {
    const store = await Store.openSteppable({ partitions, args: ['--enable-debug-command', 'yes'] });
    await store.server.stopClock();
    // Redis removes expired keys now and then by itself; since Redis 8 in the very millisecond in which they still exist
    // for a command. A sequence must not depend on when it does. Commands notice expired keys all the same.
    await store.client.debug('SET-ACTIVE-EXPIRE', '0');
    return new ModelledRedisStore(store, [new Redis(store.server.url), new Redis(store.server.url)], turns);
  }

  async clear(): Promise<void> {
    this.#read.clear();
    await this.store.client.flushall();
  }

  now(): Promise<number> {
    return this.store.now();
  }

  advance(ms: number): Promise<void> {
    return this.store.server.stepClock(ms);
  }

  async recorded(): Promise<SessionEvent[]> {
    if (!this.#mayHaveRecorded) return [];
    this.#mayHaveRecorded = false;
    const { all } = this.store.partitions;
    const pipeline = this.store.client.pipeline();
    for (const { events } of all) pipeline.xrange(events, `(${this.#read.get(events) ?? '0-0'}`, '+');
    const replies = ((await pipeline.exec()) ?? []) as [Error | null, StreamReply[]][];
    const events = await Promise.all(all.map((partition, i) => this.#eventsOf(partition, replies[i]![1])));
    return events.flat();
  }

  async leftovers(): Promise<string[]> {
    const { client, partitions } = this.store;
    const streams = partitions.all.map(({ events }) => events);
    const keys = (await client.keys('*')).filter((key) => !streams.includes(key));
    const pipeline = client.pipeline();
    for (const key of keys) pipeline.pttl(key);
    const timesToLive = (await pipeline.exec()) ?? [];
    return keys.filter((_, i) => Number(timesToLive[i]![1]) < 0);
  }

  async close(): Promise<void> {
    for (const client of this.clients) client.disconnect();
    await this.store.close();
  }

  async #eventsOf(partition: SessionKeys, replies: readonly StreamReply[]): Promise<SessionEvent[]> {
    const last = replies.at(-1);
    if (last) this.#read.set(partition.events, last[0]);
    const events = await Promise.all(replies.map((reply) => this.#events.load(toStreamEntry(partition, reply))));
    return events.filter((event) => event !== undefined);
  }

  #nodeOf(client: Redis, turns: Turns): Node {
    const { partitions } = this.store;
    const scripts = intercepted(
      new SessionScripts(client, partitions, { ...KEEPING_RULES, retention: RETENTION }),
      (_, call) => {
        this.#mayHaveRecorded = true;
        return call();
      },
    );
    const connection = turns.taking(new RequestConnection(client, { commandTimeout: MINUTE }));
    const repository = new OpenRedisRepository(connection, scripts, partitions);
    const taking = turns.taking(scripts);
    const [stepped, options] = [turns.taking(client), { batchSize: BATCH_SIZE }];
    // Its own for each sweep: a sequence that is given up leaves calls that wait for ever, and calls behind them. Without a
    // pause: a timer is no step, so nobody would wait for it.
    const sweeper = () => new SessionExpirationSweeper(stepped, taking, partitions, options, new BackgroundLimiter(0));
    const claim = async (keys: SessionKeys, ids: readonly string[]) => {
      const members = ids.filter((id) => partitions.of(id) === keys).map((id) => `expires:${id}`);
      if (members.length > 0) await taking.claimExpired(keys, members);
    };
    return {
      steps: repository,
      losesReplies: true,
      mayReplace: (id, replaced) => repository.mayReplace(id, replaced),
      sweep: (ahead) => sweeper().runOnce({ ahead }),
      hearOf: (ids) => Promise.all(partitions.all.map((keys) => claim(keys, ids))),
    };
  }
}

class OpenMapRepository extends MapSessionRepository implements StoreSteps {
  override load(ids: readonly string[]) {
    return super.load(ids);
  }
  override write(change: SessionChange) {
    return super.write(change);
  }
  override lookUp(indexName: string, value: string) {
    return super.lookUp(indexName, value);
  }
}

class OpenRedisRepository extends RedisSessionRepository implements StoreSteps {
  override load(ids: readonly string[]) {
    return super.load(ids);
  }
  override write(change: SessionChange) {
    return super.write(change);
  }
  override lookUp(indexName: string, value: string) {
    return super.lookUp(indexName, value);
  }
  override mayReplace(id: string, replaced: string) {
    return super.mayReplace(id, replaced);
  }
}
