import { MapSessionRepository, type SessionEvent, type SessionInfo } from '@nest-session/core';
import type { MaxSessionsOptions } from '@nest-session/core/internal';
import type {
  CreateSession,
  DeleteSession,
  SessionChange,
  SessionRecord,
  UpdateSession,
  WriteReply,
} from '@nest-session/core/store';
import { ManualClock } from '@nest-session/testing';
import { SteppableRedisCluster } from '@nest-session/test-infrastructure';
import { type Cluster, type NodeRole, Redis } from 'ioredis';
import { resolveRedisSessionOptions } from '../../../src/configuration/redis-session.options.js';
import { isCluster } from '../../../../redis-events/src/connection/node-with.js';
import { closeConnections, createConnections } from '../../../../redis-events/src/connection/redis-connections.js';
import { type RequestNodes, SingleNode } from '../../../../redis-events/src/connection/redis-nodes.js';
import type { ExpirationStoreName } from '../../../src/configuration/expirations.options.js';
import { RequestConnection } from '../../../../redis-events/src/connection/request.connection.js';
import { EventLoader } from '../../../../redis-events/src/delivery/event-producer.js';
import { toStreamEntry } from '../../../../redis-events/src/scripts/stream/stream-entry.js';
import { OlderSessionSweeper, SessionEpochs } from '../../../src/repository/session-epochs.js';
import { SessionExpirationSweeper } from '../../../src/expiration/session-expiration.sweeper.js';
import type { SessionKeys } from '../../../src/keys/session-keys.js';
import { SessionPartitions } from '../../../src/keys/session-partitions.js';
import { LimitAcrossPartitions } from '../../../src/limits/limit-across-partitions.js';
import { RedisSessionRepository } from '../../../src/repository/redis-session.repository.js';
import { type Room, SessionScripts, type StoreReply } from '../../../src/scripts/session/session.scripts.js';
import type { StreamReply } from '../../../../redis-events/src/scripts/stream/stream-entry.js';
import { BackgroundLimiter } from '../../../../redis-events/src/timing/background.limiter.js';
import { GRACE, KEEPING_RULES, MINUTE, Store } from '../../support/store.fixture.js';
import { PRINCIPALS, TEAMS } from './actors.js';
import type { StoreTraits } from './session.model.js';
import { intercepted, type Turns } from './store.turns.js';
import { hashOfValue } from '../../support/hash-of-value.js';
import { sessionEvents } from '../../support/event-scripts.js';

export type MaxSessions = Required<MaxSessionsOptions>;

/** The calls of a repository to its store. */
export interface StoreSteps {
  load(ids: readonly string[]): Promise<readonly SessionRecord[]>;
  write(change: SessionChange): Promise<WriteReply>;
  lookUp(indexName: string, value: string): Promise<readonly SessionRecord[]>;
  listAll(indexName: string, value: string): Promise<readonly SessionInfo[]>;
  count(indexName: string, value: string): Promise<number>;
  endListed(indexName: string, value: string, except: readonly string[]): Promise<number>;
}

/** Hears of the steps that one call takes. */
export interface StoreWatcher {
  /** A step has ended so many of the sessions that `lists` tells by their ids and indexes. */
  expectEnded(total: number, lists: (id: string, indexes: ReadonlyMap<string, string>) => boolean): void;
  /** A sign-in that has a place in the ledger was to be stored in time. */
  expectStored(change: CreateSession | UpdateSession, room: Room, reply: StoreReply<WriteReply>): void;
  /** A sign-in was to end a session that is too many. */
  expectReply(change: DeleteSession, reply: WriteReply): void;
  /** Time passes. */
  advance(ms: number): void;
}

/** One of the instances of an application that share a store. */
export interface Node {
  readonly steps: StoreSteps;
  /** Whether a sign-in that is limited takes several steps. */
  readonly signsInStepwise: boolean;
  /** Whether the reply to a change may be lost. */
  readonly losesReplies: boolean;
  mayReplace(id: string, replaced: string): boolean;
  /** Ends all sessions. In the same step all instances learn that, `learn` is called, and a millisecond passes. */
  endEvery(learn: () => void): Promise<void>;
  /** Ends what began before that. In the same step, `learn` is called. */
  endOlder(learn: () => void): Promise<void>;
  /** Reports the sessions that have ended, or will have in `ahead` milliseconds. */
  sweep(ahead: number): Promise<unknown>;
  /** Receives key events of these sessions. */
  hearOf(ids: readonly string[]): Promise<unknown>;
}

/** A store of which each step waits for its turn, and whose clock the test steps. */
export interface ModelledStore {
  readonly traits: StoreTraits;
  readonly nodes: readonly Node[];
  /** The same calls, without waiting for a turn. */
  readonly atOnce: StoreSteps;
  /** Deletes everything. */
  clear(watcher: StoreWatcher, limit: MaxSessions | undefined): Promise<void>;
  /** Epoch milliseconds. */
  now(): Promise<number>;
  advance(ms: number): Promise<void>;
  /** The ids in the ledger of a principal; undefined when there is none. */
  placesOf(principal: string): Promise<string[] | undefined>;
  /** The events recorded since the last call. */
  recorded(): Promise<SessionEvent[]>;
  /** All keys except the data of ended sessions and the events. */
  leftovers(): Promise<string[]>;
  close(): Promise<void>;
}

export class ModelledMapStore implements ModelledStore {
  readonly traits = { lag: 0, grace: Infinity, endsLater: false, foundFrom: (end: number) => end };
  watcher!: StoreWatcher;
  readonly #clock = new ManualClock();
  #events: SessionEvent[] = [];
  #repository = this.#empty();

  constructor(private readonly turns: Turns) {}

  get nodes(): readonly Node[] {
    const taking = this.turns.taking(this.#repository);
    const endListed = async (indexName: string, value: string, except: readonly string[]) => {
      const ended = await taking.endListed(indexName, value, except);
      this.watcher.expectEnded(ended, (id, indexes) => indexes.get(indexName) === value && !except.includes(id));
      return ended;
    };
    const endEvery = async (learn: () => void) => {
      await this.#repository.endEverySession();
      await this.advance(1);
      learn();
    };
    // It needs no key event.
    return [
      {
        steps: overridden(taking, { endListed }),
        endEvery: (learn) => this.turns.take('end every session', () => endEvery(learn)),
        endOlder: async () => {},
        signsInStepwise: false,
        losesReplies: false,
        mayReplace: () => true,
        sweep: () => taking.endExpired(),
        hearOf: () => taking.endExpired(),
      },
    ];
  }

  get atOnce(): StoreSteps {
    return this.#repository;
  }

  async clear(watcher: StoreWatcher): Promise<void> {
    this.watcher = watcher;
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

  async placesOf(): Promise<undefined> {}

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

const NODES = 3;
const DEBUGGING = ['--enable-debug-command', 'yes'];
const SECOND = 1000;

// So few that a sweep often takes several steps.
const BATCH_SIZE = 2;

// Longer than any sequence takes.
const RETENTION = 10 * 24 * 60 * MINUTE;

/** The connections of one instance. */
interface Connections {
  readonly client: Redis;
  readonly request: RequestNodes;
}

/** A Redis or a Redis Cluster whose clock stands still. */
interface ModelledServer {
  readonly partitions: SessionPartitions;
  /** A connection to each node that has keys. */
  readonly primaries: readonly Redis[];
  /** Those of the test, and of the instances. */
  readonly connections: readonly [Connections, ...Connections[]];
  advance(ms: number): Promise<void>;
  close(): Promise<unknown>;
}

export class ModelledRedisStore implements ModelledStore {
  readonly traits: StoreTraits;
  nodes: readonly Node[] = [];
  atOnce!: OpenRedisRepository;
  readonly #client: Redis;
  readonly #connections: ReadonlyMap<Redis, RequestConnection>;
  watcher!: StoreWatcher;
  #limit: MaxSessions | undefined;
  readonly #scripts = new Map<Redis, SessionScripts>();
  /** One for all instances: whatever one learns, all learn at once. */
  readonly #epochs = new SessionEpochs();
  /** The position of the last event of each stream. */
  readonly #read = new Map<string, string>();
  readonly #events: EventLoader<SessionEvent>;
  /** Whether a script has been called since the events were read: nothing else records any. */
  #mayHaveRecorded = false;

  private constructor(
    private readonly server: ModelledServer,
    private readonly turns: Turns,
    /** Where the instances note the ends of sessions, in turn. */
    private readonly expirations: readonly ExpirationStoreName[],
  ) {
    const options = { commandTimeout: MINUTE };
    const { connections } = server;
    this.#client = connections[0].client;
    this.#connections = new Map(
      connections.map(({ client, request }) => [client, new RequestConnection(request, options)]),
    );
    this.#events = new EventLoader(this.#client, sessionEvents());
    this.traits = {
      lag: 1,
      grace: GRACE,
      endsLater: true,
      foundFrom: expirations.includes('buckets')
        ? (end: number) => Math.floor((end + MINUTE) / MINUTE) * MINUTE
        : (end: number) => end + 1,
    };
  }

  static async open(
    turns: Turns,
    partitions: number,
    expirations: readonly ExpirationStoreName[] = ['buckets'],
  ): Promise<ModelledRedisStore> {
    const store = await Store.openSteppable({ partitions, args: DEBUGGING });
    await store.server.stopClock();
    await expireOnlyOnAccess(store.client);
    const clients = Array.from({ length: NODES }, () => new Redis(store.server.url));
    const connectionsOf = (client: Redis) => ({ client, request: new SingleNode(client) });
    const server: ModelledServer = {
      partitions: store.partitions,
      primaries: [store.client],
      connections: [connectionsOf(store.client), ...clients.map(connectionsOf)],
      advance: (ms) => store.server.stepClock(ms),
      close: async () => {
        for (const client of clients) client.disconnect();
        await store.close();
      },
    };
    return new ModelledRedisStore(server, turns, expirations);
  }

  static async openCluster(turns: Turns, partitions: number): Promise<ModelledRedisStore> {
    const cluster = await SteppableRedisCluster.start({ args: DEBUGGING });
    await cluster.stopClock();
    const primaries = cluster.nodes.map(({ url }) => new Redis(url));
    await Promise.all(primaries.map(expireOnlyOnAccess));
    const options = resolveRedisSessionOptions({ cluster: { nodes: cluster.addresses }, commandTimeout: '1m' });
    const opened = Array.from({ length: 1 + NODES }, () => createConnections(options));
    for (const { request, background } of opened) {
      await background.connect();
      await request.connect();
    }
    const [own, ...others] = opened.map(({ request, background }) => ({ request, client: background }));
    const server: ModelledServer = {
      partitions: new SessionPartitions('nest:session', partitions),
      primaries,
      connections: [own!, ...others],
      advance: (ms) => cluster.stepClock(ms),
      close: async () => {
        for (const primary of primaries) primary.disconnect();
        await Promise.all(opened.map(closeConnections));
        await cluster.stop();
      },
    };
    return new ModelledRedisStore(server, turns, ['buckets']);
  }

  async clear(watcher: StoreWatcher, limit: MaxSessions | undefined): Promise<void> {
    this.watcher = watcher;
    this.#limit = limit;
    this.#read.clear();
    // A sequence that is given up leaves sign-ins behind, for which others of their instance would wait.
    const [, ...instances] = this.server.connections;
    this.nodes = instances.map(({ client }) => this.#nodeOf(client));
    this.atOnce = this.#repositoryOn(this.#connections.get(this.#client)!, this.#client, LimitAcrossPartitions);
    await Promise.all(this.server.primaries.map((primary) => primary.flushall()));
  }

  async now(): Promise<number> {
    const [seconds, microseconds] = await this.server.primaries[0]!.time();
    return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
  }

  advance(ms: number): Promise<void> {
    return this.server.advance(ms);
  }

  async recorded(): Promise<SessionEvent[]> {
    if (!this.#mayHaveRecorded) return [];
    this.#mayHaveRecorded = false;
    const eventsIn = async (partition: SessionKeys) => {
      const after = `(${this.#read.get(partition.events) ?? '0-0'}`;
      return this.#eventsOf(partition, await this.#client.xrange(partition.events, after, '+'));
    };
    return (await Promise.all(this.server.partitions.all.map(eventsIn))).flat();
  }

  async placesOf(principal: string): Promise<string[] | undefined> {
    const name = hashOfValue(principal);
    const ledger = this.server.partitions.of(name).ledger(name);
    const ids = await this.#client.hkeys(ledger);
    return ids.length > 0 ? ids : undefined;
  }

  async leftovers(): Promise<string[]> {
    const kept = this.server.partitions.all.flatMap(({ events, epoch }) => [events, epoch]);
    const leftOn = async (primary: Redis) => {
      const keys = (await primary.keys('*')).filter((key) => !kept.includes(key));
      const timesToLive = await Promise.all(keys.map((key) => primary.pttl(key)));
      return keys.filter((_, i) => timesToLive[i]! < 0);
    };
    return (await Promise.all(this.server.primaries.map(leftOn))).flat();
  }

  async close(): Promise<void> {
    await this.server.close();
  }

  async #eventsOf(partition: SessionKeys, replies: readonly StreamReply[]): Promise<SessionEvent[]> {
    const last = replies.at(-1);
    if (last) this.#read.set(partition.events, last[0]);
    const events = await Promise.all(replies.map((reply) => this.#events.load(toStreamEntry(partition, reply))));
    return events.filter((event) => event !== undefined);
  }

  #nodeOf(client: Redis): Node {
    const [{ partitions }, { turns }] = [this.server, this];
    const scripts = this.#scriptsOn(client);
    const pause = (ms: number) => turns.take('pause', () => this.#pause(ms));
    class SteppedLedger extends LimitAcrossPartitions {
      #passed = 0;

      protected override now(): number {
        return this.#passed;
      }

      protected override async sleep(): Promise<void> {
        this.#passed += SECOND;
        await pause(SECOND);
      }
    }
    const repository = this.#repositoryOn(turns.taking(this.#connections.get(client)!), client, SteppedLedger);
    repository.asStep = (load) => turns.take('load', load);
    const taking = turns.taking(scripts);
    const [stepped, options] = [takingOnNodes(turns, client), { batchSize: BATCH_SIZE }];
    // Its own for each sweep: a sequence that is given up leaves calls that wait for ever, and calls behind them.
    // Without a pause: a timer is no step, so nobody would wait for it.
    const sweeper = () => new SessionExpirationSweeper(stepped, taking, partitions, options, new BackgroundLimiter(0));
    const claim = async (keys: SessionKeys, ids: readonly string[]) => {
      const members = ids.filter((id) => partitions.of(id) === keys).map((id) => `expires:${id}`);
      if (members.length > 0) await taking.claimExpired(keys, members);
    };
    return {
      steps: repository,
      endEvery: (learn) => turns.take('end every session', () => this.#endEvery(learn)),
      endOlder: (learn) => turns.take('end older sessions', () => this.#endOlder(learn)),
      signsInStepwise: partitions.all.length > 1,
      losesReplies: true,
      mayReplace: (id, replaced) => repository.mayReplace(id, replaced),
      sweep: (ahead) => sweeper().runOnce({ ahead }),
      hearOf: (ids) => Promise.all(partitions.all.map((keys) => claim(keys, ids))),
    };
  }

  #scriptsOn(client: Redis): SessionScripts {
    const scripts = this.#scripts.get(client) ?? this.#newScripts(client);
    this.#scripts.set(client, scripts);
    return scripts;
  }

  #newScripts(client: Redis): SessionScripts {
    const { partitions, connections } = this.server;
    const instance = connections.findIndex((each) => each.client === client) - 1;
    const store = this.expirations[instance % this.expirations.length] ?? this.expirations[0]!;
    const scripts = intercepted(
      new SessionScripts(client, partitions, { ...KEEPING_RULES, retention: RETENTION, store }),
      (_, call) => {
        this.#mayHaveRecorded = true;
        return call();
      },
    );
    const endListed: SessionScripts['endListed'] = async (keys, index, size, bounds) => {
      const batch = await scripts.endListed(keys, index, size, bounds);
      const isListed = (entry: readonly [string, string]) => keys.index(entry[0], hashOfValue(entry[1])) === index;
      this.watcher.expectEnded(batch.ended, (id, indexes) => {
        return partitions.of(id) === keys && [...indexes].some(isListed) && !bounds?.stays?.includes(id);
      });
      return batch;
    };
    const create: SessionScripts['create'] = async (change, room) => {
      const reply = await scripts.create(change, room);
      if (room) this.watcher.expectStored(...inValues(change, room, reply));
      return reply;
    };
    const save: SessionScripts['save'] = async (change, room) => {
      const reply = await scripts.save(change, room);
      if (room) this.watcher.expectStored(...inValues(change, room, reply));
      return reply;
    };
    return overridden(scripts, { endListed, create, save });
  }

  #repositoryOn(
    connection: RequestConnection,
    client: Redis,
    Ledger: typeof LimitAcrossPartitions,
  ): OpenRedisRepository {
    const { partitions } = this.server;
    const scripts = this.#scriptsOn(client);
    const end: SessionScripts['delete'] = async (id, change) => {
      const reply = await scripts.delete(id, change);
      const named = change?.listed && { ...change.listed, value: valueOf(change.listed.value) };
      this.watcher.expectReply({ kind: 'delete', id, listed: named }, reply);
      return reply;
    };
    const ending = overridden(scripts, { delete: end });
    const ledger = new Ledger(connection, () => ending, partitions, { commandTimeout: SECOND });
    return new OpenRedisRepository(
      connection,
      () => scripts,
      partitions,
      { maxSessions: this.#limit },
      this.#epochs,
      ledger,
    );
  }

  async #pause(ms: number): Promise<void> {
    await this.advance(ms);
    this.watcher.advance(ms);
  }

  async #endEvery(learn: () => void): Promise<void> {
    await this.atOnce.endEverySession();
    await this.advance(1);
    learn();
  }

  async #endOlder(learn: () => void): Promise<void> {
    const [{ partitions }, limiter] = [this.server, new BackgroundLimiter(0)];
    await Promise.all(partitions.all.map((keys) => this.#epochs.ask(this.#client, keys)));
    const sweeper = new OlderSessionSweeper(
      this.#client,
      this.#scriptsOn(this.#client),
      partitions,
      this.#epochs,
      limiter,
    );
    await sweeper.runOnce();
    learn();
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
  listAll(indexName: string, value: string) {
    return allOf(super.list(indexName, value));
  }
  override count(indexName: string, value: string) {
    return super.count(indexName, value);
  }
  override endListed(indexName: string, value: string, except: readonly string[]) {
    return super.endListed(indexName, value, except);
  }
}

class OpenRedisRepository extends RedisSessionRepository implements StoreSteps {
  /** Makes one step of a load, whose calls to several partitions leave together. */
  asStep: <T>(load: () => Promise<T>) => Promise<T> = (load) => load();

  override load(ids: readonly string[]) {
    return this.asStep(() => super.load(ids));
  }
  override write(change: SessionChange) {
    return super.write(change);
  }
  override lookUp(indexName: string, value: string) {
    return super.lookUp(indexName, value);
  }
  listAll(indexName: string, value: string) {
    return allOf(super.list(indexName, value));
  }
  override count(indexName: string, value: string) {
    return super.count(indexName, value);
  }
  override endListed(indexName: string, value: string, except: readonly string[]) {
    return super.endListed(indexName, value, except);
  }
  override mayReplace(id: string, replaced: string) {
    return super.mayReplace(id, replaced);
  }
}

/**
 * Redis removes expired keys now and then by itself; since Redis 8 in the very millisecond in which they still exist
 * for a command. A sequence must not depend on when it does. Commands notice expired keys all the same.
 */
async function expireOnlyOnAccess(primary: Redis): Promise<void> {
  await primary.debug('SET-ACTIVE-EXPIRE', '0');
}

/** The same client, but each command is a step, those to a node of a Cluster as well. */
function takingOnNodes(turns: Turns, client: Redis | Cluster): Redis {
  if (!isCluster(client)) return turns.taking(client);
  const nodes = (role?: NodeRole) => client.nodes(role).map((node) => turns.taking(node));
  return overridden(turns.taking(client), { nodes }) as unknown as Redis;
}

async function allOf<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** The same object with other methods. */
function overridden<T extends object>(target: T, methods: Partial<T>): T {
  return new Proxy(target, {
    get: (_target, name) => Reflect.get(name in methods ? methods : target, name) as unknown,
  });
}

const VALUES: ReadonlyMap<string, string> = new Map(
  [...PRINCIPALS, ...TEAMS].map((value) => [hashOfValue(value), value]),
);
const valueOf = (hash: string) => VALUES.get(hash) ?? hash;

/** A change as the scripts get it, and their reply, with the values of indexes in the place of their hashes. */
function inValues<Change extends CreateSession | UpdateSession>(
  change: Change,
  room: Room,
  reply: StoreReply<WriteReply>,
): [Change, Room, StoreReply<WriteReply>] {
  const indexes = new Map([...change.indexes].map(([name, hash]) => [name, hash === null ? null : valueOf(hash)]));
  const replied = reply.outcome === 'unplaced' ? { ...reply, principal: valueOf(reply.principal) } : reply;
  return [{ ...change, indexes }, { ...room, principal: valueOf(room.principal) }, replied];
}
