import type { UpdateReply } from '@nest-session/core/store';
import { SteppableRedisServer } from '@nest-session/test-infrastructure';
import { RedisServer, type RedisServerOptions } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { randomBytes } from 'node:crypto';
import type { ExpirationStoreName } from '../../src/configuration/expirations.options.js';
import type { EncryptedUpdate } from '../../src/encryption/session-encryption.js';
import type { SessionKeys } from '../../src/keys/session-keys.js';
import { SessionPartitions } from '../../src/keys/session-partitions.js';
import { type KeepingRules, SessionScripts } from '../../src/scripts/session/session.scripts.js';

export const MINUTE = 60_000;
export const GRACE = 5 * MINUTE;
export const RETENTION = 60 * MINUTE;
export const KEEPING_RULES: KeepingRules = { grace: GRACE, retention: RETENTION, deadLetters: { maxSize: 10_000_000 } };

export interface StoreOptions extends RedisServerOptions {
  /** @default 1 */
  readonly partitions?: number;
  /** @default 'buckets' */
  readonly expirations?: ExpirationStoreName;
}

/** The changes that a test saves. */
export interface Changes extends Omit<Partial<EncryptedUpdate>, 'kind' | 'id' | 'attributes' | 'indexes'> {
  readonly attributes?: Iterable<readonly [name: string, text: string | null]>;
  readonly indexes?: Iterable<readonly [name: string, value: string | null]>;
}

export function updateOf(id: string, { attributes = [], indexes = [], ...others }: Changes): EncryptedUpdate {
  return { kind: 'update', id, ...others, attributes: new Map(attributes), indexes: new Map(indexes) };
}

/**
 * For scripts of events: as long as dead letters live, and as much room as they have, where a test does not ask for
 * less.
 */
export const DEAD_LETTERS = { retention: 30 * 24 * 60 * MINUTE, maxSize: 10_000_000, maxDataSize: 100_000 };

/** The scripts on a Redis of the suite's own, and reads of the keys that they write. */
export class Store<Server extends RedisServer = RedisServer> {
  readonly scripts: SessionScripts;

  private constructor(
    readonly server: Server,
    readonly client: Redis,
    readonly partitions: SessionPartitions,
    readonly expirations: ExpirationStoreName,
  ) {
    this.scripts = new SessionScripts(client, partitions, { ...KEEPING_RULES, store: expirations });
  }

  static async open(options: StoreOptions = {}): Promise<Store> {
    return Store.#on(await RedisServer.start(options), options);
  }

  static async openSteppable(options: StoreOptions = {}): Promise<SteppableStore> {
    return Store.#on(await SteppableRedisServer.start(options), options);
  }

  static #on<Server extends RedisServer>(
    server: Server,
    { partitions, expirations = 'buckets' }: StoreOptions,
  ): Store<Server> {
    const layout = new SessionPartitions('nest:session', partitions);
    return new Store(server, new Redis(server.url), layout, expirations);
  }

  keysOf(id: string): SessionKeys {
    return this.partitions.of(id);
  }

  /** Those of all sessions, where there is one partition. */
  get keys(): SessionKeys {
    return this.partitions.all[0]!;
  }

  async close(): Promise<void> {
    this.client.disconnect();
    await this.server.stop();
  }

  /** An unused id; `beside`: in the partition of that one. */
  id(beside?: string): string {
    const id = randomBytes(32).toString('base64url');
    return beside === undefined || this.keysOf(id) === this.keysOf(beside) ? id : this.id(beside);
  }

  async create(
    attributes: Record<string, string> = {},
    options: { id?: string; interval?: number; absoluteTimeout?: number; principal?: string } = {},
  ) {
    const { id = this.id(), interval = 1800, absoluteTimeout = -1, principal } = options;
    const reply = await this.scripts.create({
      kind: 'create',
      id,
      presentedIds: [],
      maxInactiveInterval: interval,
      absoluteTimeout,
      attributes: new Map(Object.entries(attributes)),
      indexes: new Map(principal === undefined ? [] : [['principal', principal]]),
    });
    expect(reply).toEqual({ outcome: 'created', creationTime: expect.any(Number) });
    return id;
  }

  async save(id: string, changes: Changes): Promise<UpdateReply> {
    return this.scripts.save(updateOf(id, changes)) as Promise<UpdateReply>;
  }

  /** Ends a session now, without a key event, as if its timeout had passed. */
  async runOut(id: string): Promise<void> {
    await this.client.del(this.keysOf(id).shadow(id));
  }

  /** The same, and moves it to a bucket that earlier sweeps should have read, or to such a time in the sorted set. */
  async runOutLongAgo(id: string): Promise<void> {
    const [keys, minute] = [this.keysOf(id), `${MINUTE}`];
    const standsIn = await this.buckets(id);
    await this.runOut(id);
    if ((await this.due(id)) !== null) return void (await this.client.zadd(keys.ends, minute, id));
    for (const left of standsIn) await this.client.srem(keys.bucket(left), `expires:${id}`);
    await this.client.hset(keys.session(id), 'bucket', minute);
    await this.client.sadd(keys.bucket(minute), `expires:${id}`);
    await this.client.zadd(keys.bucketList, minute, minute);
  }

  session(id: string): Promise<Record<string, string>> {
    return this.client.hgetall(this.keysOf(id).session(id));
  }

  /**
   * Ends sessions in a millisecond with a key event. PEXPIRE would do that most of the time: on a busy machine the
   * millisecond can pass while it runs, and then it deletes the key at once, without `expired`.
   */
  async expireSoon(...ids: string[]): Promise<void> {
    await this.expireKeysSoon(...ids.map((id) => this.keysOf(id).shadow(id)));
  }

  async expireKeysSoon(...keys: string[]): Promise<void> {
    const pipeline = this.client.pipeline();
    for (const key of keys) pipeline.set(key, '', 'PX', 1);
    await pipeline.exec();
  }

  async isAlive(id: string): Promise<boolean> {
    return (await this.client.exists(this.keysOf(id).shadow(id))) === 1;
  }

  /** The buckets in which a session stands. */
  async buckets(id: string): Promise<string[]> {
    const keys = this.keysOf(id);
    const minutes = await this.client.zrangebyscore(keys.bucketList, '-inf', '+inf');
    const standsIn = await Promise.all(minutes.map((m) => this.client.sismember(keys.bucket(m), `expires:${id}`)));
    return minutes.filter((_, i) => standsIn[i] === 1);
  }

  /** The time that the sorted set has for a session, as Redis writes it; null when it is not in there. */
  due(id: string): Promise<string | null> {
    return this.client.zscore(this.keysOf(id).ends, id);
  }

  /** The recorded events of a session: the type of each, with its other fields. */
  async events(id: string): Promise<Record<string, string>[]> {
    const events = await this.#entries(this.keysOf(id).events);
    return events.filter((event) => event['session'] === id || event['previous'] === id);
  }

  async eventTypes(id: string): Promise<string[]> {
    return (await this.events(id)).map((event) => event['type']!);
  }

  /** The types of the events of each of many sessions, which have kept their ids. */
  async eventTypesOf(ids: readonly string[]): Promise<string[][]> {
    const types = new Map(ids.map((id) => [id, [] as string[]]));
    const events = (await this.#inAll((keys) => this.#entries(keys.events))).flat();
    for (const { type, session } of events) types.get(session!)?.push(type!);
    return [...types.values()];
  }

  /** Epoch milliseconds by the clock of Redis. */
  async now(): Promise<number> {
    const [seconds, microseconds] = await this.client.time();
    return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
  }

  /** The number of pending events of a group. */
  async pending(group: string): Promise<number> {
    const summaries = await this.#inAll(({ events }) => this.client.xpending(events, group));
    return summaries.reduce((sum, [count]) => sum + Number(count), 0);
  }

  /** The consumers of a group, with the one that holds the events waiting for a retry. */
  async consumers(group: string): Promise<string[]> {
    const infos = await this.#inAll(({ events }) => this.client.xinfo('CONSUMERS', events, group));
    return [...new Set((infos as string[][][]).flat().map(([, name]) => name!))];
  }

  /** How many instances read events, of any group. */
  async readers(): Promise<number> {
    const clients = String(await this.client.client('LIST')).split('\n');
    // Those that wait on the stream, or for the signals of several partitions.
    const waits = /name=nest:session:(reader .*cmd=xreadgroup |signals .* ssub=[1-9])/;
    return clients.filter((client) => waits.test(client)).length;
  }

  /** The dead letters, in the order of each partition. */
  async deadLetters(): Promise<Record<string, string>[]> {
    return (await this.#inAll(({ deadLetters }) => this.#entries(deadLetters))).flat();
  }

  #inAll<T>(ask: (keys: SessionKeys) => Promise<T>): Promise<T[]> {
    return Promise.all(this.partitions.all.map(ask));
  }

  async #entries(stream: string): Promise<Record<string, string>[]> {
    const entries = await this.client.xrange(stream, '-', '+');
    return entries.map(([, fields]) =>
      Object.fromEntries(fields.flatMap((field, i) => (i % 2 === 0 ? [[field, fields[i + 1]!]] : []))),
    );
  }
}

/** A store whose clock the test steps. */
export type SteppableStore = Store<SteppableRedisServer>;
