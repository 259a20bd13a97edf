import { Inject, Injectable, Optional } from '@nestjs/common';
import { IndexedSessionRepository, PRINCIPAL_NAME_INDEX_NAME, type SessionInfo } from '@nest-session/core';
import { lookBy, SessionExtension } from '@nest-session/core/internal';
import type {
  CreateReply,
  CreateSession,
  SessionChange,
  SessionRecord,
  SessionRepositoryOptions,
  UpdateSession,
  WriteReply,
} from '@nest-session/core/store';
import { redisTime, RequestConnection, type ScriptsOn } from '@nest-session/redis-events/internal';
import type { Redis } from 'ioredis';
import { REQUEST_SESSION_SCRIPTS, SESSION_REPOSITORY_OPTIONS } from '../configuration/redis-session.tokens.js';
import {
  type LoadedRecord,
  type NewDataKey,
  SessionEncryption,
  type StoredRecord,
} from '../encryption/session-encryption.js';
import { TimedSessions } from '../expiration/timed-sessions.js';
import { hashOfValue, type SessionKeys, withHashedIndexes } from '../keys/session-keys.js';
import { anyGoesOn, lookUpListed } from '../keys/rotated-sessions.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import { LimitAcrossPartitions } from '../limits/limit-across-partitions.js';
import { ListedSessions } from './listed-sessions.js';
import type { Room, SessionScripts, StoreReply } from '../scripts/session/session.scripts.js';
import { raiseEpochs, SessionEpochs } from './session-epochs.js';
import { hasIndexEntry, lacksEnd, NO_KEY, readSession, toLiveRecord } from './session-hash.js';

type StoringChange = CreateSession | UpdateSession;

type Extension = Pick<SessionExtension, 'takeover' | 'onEveryEnd'>;

export interface RedisRepositoryOptions extends SessionRepositoryOptions {
  /** @default none */
  readonly encryption?: SessionEncryption | undefined;
}

/**
 * Keeps sessions in Redis. A load takes one round trip, or two for more than twenty ids. A write takes one, and makes
 * the whole change or none of it. A call that fails throws a SessionStoreError; a write may still take effect then.
 */
@Injectable()
export class RedisSessionRepository extends IndexedSessionRepository {
  readonly #encryption: SessionEncryption;
  readonly #listed: ListedSessions;
  /** Undefined with one partition, where the scripts see all sessions of a principal. */
  readonly #ledgers: LimitAcrossPartitions | undefined;
  readonly #ends: Pick<TimedSessions, 'following'> | undefined;

  /** @internal `RedisSessionModule` does this: inject the repository. */
  constructor(
    @Inject(RequestConnection) private readonly connection: RequestConnection,
    @Inject(REQUEST_SESSION_SCRIPTS) private readonly scripts: ScriptsOn<SessionScripts>,
    @Inject(SessionPartitions) private readonly partitions: SessionPartitions,
    @Inject(SESSION_REPOSITORY_OPTIONS) private readonly rules: RedisRepositoryOptions = {},
    @Inject(SessionEpochs) private readonly epochs = new SessionEpochs(),
    @Inject(LimitAcrossPartitions) limit?: LimitAcrossPartitions,
    @Optional() @Inject(SessionExtension) private readonly extension: Extension = {},
    @Inject(TimedSessions) ends?: Pick<TimedSessions, 'following' | 'hasTimer'>,
  ) {
    super(rules);
    this.#encryption = rules.encryption ?? new SessionEncryption();
    epochs.onRaise = () => extension.onEveryEnd?.();
    this.#ends = ends?.hasTimer ? ends : undefined;
    this.#ledgers = partitions.count > 1 ? limit : undefined;
    this.#listed = new ListedSessions(connection, scripts, partitions, epochs);
    lookBy(this, (ids) => this.#lookAt(ids));
  }

  protected load(ids: readonly string[], only?: readonly string[]): Promise<SessionRecord[]> {
    return ids.length <= LOADED_AT_SIGHT ? this.#loadAll(ids, only) : this.#loadLive(ids, only);
  }

  /** Asks first which are alive. */
  async #loadLive(ids: readonly string[], only: readonly string[] | undefined): Promise<SessionRecord[]> {
    const live = await Promise.all(
      this.partitions.grouped(ids).map(async ([keys, its]) => {
        const shadows = its.map((id) => keys.shadow(id));
        const found = await this.connection.run((client) => client.mget(shadows), keys.prefix);
        return its.filter((_, i) => found[i] !== null);
      }),
    );
    return this.#loadAll([...new Set(live.flat())], only);
  }

  #loadAll(ids: readonly string[], only?: readonly string[]): Promise<LoadedRecord[]> {
    const loads = this.partitions.grouped(ids).map(([keys, its]) => this.#loadIn(keys, its, only));
    if (loads.length === 1) return loads[0]!;
    return Promise.all(loads).then((found) => {
      const records = new Map(found.flat().map((record) => [record.id, record]));
      return ids.flatMap((id) => records.get(id) ?? []);
    });
  }

  /** A session without its encryption key is shown, too: what cannot be read fails when it is read. */
  async #lookAt(ids: readonly string[]): Promise<LoadedRecord[]> {
    const open = (record: StoredRecord) => this.#encryption.decrypted(record);
    const found = this.partitions.grouped(ids).map(([keys, its]) => this.#loadIn(keys, its, undefined, open));
    return (await Promise.all(found)).flat();
  }

  async #loadIn(
    keys: SessionKeys,
    ids: readonly string[],
    only?: readonly string[],
    open = (record: StoredRecord) => this.#encryption.loaded(record),
  ): Promise<LoadedRecord[]> {
    const replies = await this.connection.run((client) => {
      const asked = this.epochs.isStale(keys) ? [this.epochs.ask(client, keys)] : [];
      return Promise.all([...ids.flatMap((id) => readSession(client, keys, id, only)), ...asked]);
    }, keys.prefix);
    const records = ids.map((id, i) => {
      const fields = replies[2 * i] as string[];
      const ttl = replies[2 * i + 1] as number;
      const record = ttl === NO_KEY ? undefined : toLiveRecord(id, fields, ttl);
      return record && !this.epochs.ends(keys, record) ? open(record) : undefined;
    });
    const live = records.filter((record) => record !== undefined);
    return live.some(lacksEnd) ? this.#withoutStrays(keys, live) : live;
  }

  /** A stray key in the place of a shadow key is no session. Only one without a time to live is asked. */
  async #withoutStrays(keys: SessionKeys, records: LoadedRecord[]): Promise<LoadedRecord[]> {
    const doubtful = records.filter(lacksEnd);
    const types = await this.connection.run(
      (client) => Promise.all(doubtful.map(({ id }) => client.type(keys.shadow(id)))),
      keys.prefix,
    );
    return records.filter((record) => !doubtful.includes(record) || types[doubtful.indexOf(record)] === 'string');
  }

  protected async lookUp(indexName: string, value: string): Promise<SessionRecord[]> {
    const hash = hashOfValue(value);
    const source = {
      connection: this.connection,
      grouped: (ids: readonly string[]) => this.partitions.grouped(ids),
      load: (ids: readonly string[]) => this.#loadAll(ids),
    };
    const read = (client: Redis, keys: SessionKeys) => client.zrange(keys.index(indexName, hash), '0', '-1');
    const listed = async () => [...new Set((await this.connection.runInAll(this.partitions, read)).flat())];
    // They have ended since the index was read, or unheard in a long outage.
    const prune = (ids: readonly string[]) =>
      this.connection.runInAll(this.partitions, (client, keys) => client.zrem(keys.index(indexName, hash), ...ids));
    return lookUpListed(listed, source, ({ index }) => hasIndexEntry(index, indexName, hash), prune);
  }

  protected override leaveMark(name: string, value: number, duration: number): Promise<void> {
    const leave = (client: Redis) => this.scripts(client).leaveMark(name, value, duration);
    return this.connection.write(leave, this.partitions.of(name).prefix);
  }

  protected override readMarks(names: readonly string[]): Promise<(number | undefined)[]> {
    return Promise.all(
      names.map(async (name) => {
        const keys = this.partitions.of(name);
        const value = await this.connection.run((client) => client.get(keys.mark(name)), keys.prefix);
        return value === null ? undefined : Number(value);
      }),
    );
  }

  protected override async readClock(): Promise<number> {
    return this.connection.run(redisTime);
  }

  protected override list(indexName: string, value: string): AsyncIterable<SessionInfo> {
    return this.#listed.list(indexName, hashOfValue(value));
  }

  protected override count(indexName: string, value: string): Promise<number> {
    return this.#listed.count(indexName, hashOfValue(value));
  }

  protected override async endListed(indexName: string, value: string, except: readonly string[]): Promise<number> {
    // Do this first: what was stored before is listed, and what comes later is refused.
    const takesOver = this.extension.takeover !== undefined;
    if (takesOver || indexName === PRINCIPAL_NAME_INDEX_NAME)
      await this.#listed.refuseBegun(indexName, hashOfValue(value), takesOver);
    return this.#listed.end(indexName, hashOfValue(value), except);
  }

  protected override async endEvery(): Promise<void> {
    await raiseEpochs(this.connection, this.scripts, this.partitions);
    await this.connection.runInAll(this.partitions, (client, keys) => this.epochs.ask(client, keys));
  }

  protected override mayReplace(id: string, replaced: string): boolean {
    return this.partitions.of(id) === this.partitions.of(replaced);
  }

  protected write(change: SessionChange): Promise<WriteReply> {
    const hashed = withHashedIndexes(change);
    const reply = this.#writeNow(hashed);
    return this.#ends ? this.#ends.following(hashed, reply) : reply;
  }

  #writeNow(change: SessionChange): Promise<WriteReply> {
    if (change.kind === 'touch' || change.kind === 'delete') return this.#write(change) as Promise<WriteReply>;
    const { indexes, limit } = change;
    // Also a rotation without a principal: its new id must get the place that the session may have in a ledger.
    const mayHavePlace = this.#ledgers && this.rules.maxSessions && 'newId' in change && change.newId !== undefined;
    const write = () =>
      (limit || mayHavePlace ? this.#writeLimited(change) : this.#write(change)) as Promise<WriteReply>;
    if (indexes.size === 0 && !limit) return write();
    // The ledger of a principal is made from the index, also for a session that only changes its id.
    const read = limit ? new Map([[PRINCIPAL_NAME_INDEX_NAME, limit.principal], ...indexes]) : indexes;
    return this.#listed.withoutStrayIndexes(read, write);
  }

  async #writeLimited(first: StoringChange): Promise<WriteReply> {
    for (let change = first; ;) {
      const reply = await this.#writeWithRoom(change);
      if (reply.outcome === 'unplaced') {
        const { perPrincipal, whenReached } = this.rules.maxSessions ?? {};
        const limit = change.limit ?? { atMost: perPrincipal!, whenReached: whenReached! };
        change = { ...change, limit: { ...limit, principal: reply.principal } };
      } else if (reply.outcome !== 'again' && reply.outcome !== 'late') return reply as WriteReply;
    }
  }

  #writeWithRoom(change: StoringChange): Promise<StoreReply<WriteReply>> {
    const { limit } = change;
    if (!this.#ledgers) return this.#write(change);
    if (!limit) return this.#write(change, NO_PRINCIPAL);
    return this.#ledgers.write({ ...change, limit }, (room) => this.#write(change, room));
  }

  #write(change: SessionChange, room?: Room): Promise<StoreReply<WriteReply>> {
    const { prefix } = this.partitions.of(change.id);
    if (change.kind === 'touch') {
      const touch = (client: Redis) => this.scripts(client).touch(change.id);
      // No request waits for it.
      return this.connection.write(touch, prefix, { awaitsReplicas: false });
    }
    return this.connection.write<StoreReply<WriteReply>>((client, proceed) => {
      const scripts = this.scripts(client);
      switch (change.kind) {
        case 'create':
          return this.#create(change, proceed, (creation) => scripts.create(creation, room));
        case 'update':
          return this.#encryption.save(change, (update) => {
            proceed();
            return scripts.save(update, room);
          });
        case 'delete':
          return scripts.delete(change.id, change);
      }
    }, prefix);
  }

  async #create(
    change: CreateSession,
    proceed: () => void,
    store: (creation: CreateSession & NewDataKey) => Promise<StoreReply<CreateReply>>,
  ): Promise<StoreReply<CreateReply>> {
    const isBeside = (presented: string) => this.mayReplace(change.id, presented);
    const elsewhere = change.presentedIds.filter((presented) => !isBeside(presented));
    if (elsewhere.length === 0) return this.#encryption.create(change, store);
    // The script cannot read these marks, and this look is enough: a session that is rotated later was still found by
    // this request.
    if (await anyGoesOn(this.connection, this.partitions, elsewhere)) return { outcome: 'gone' };
    proceed();
    return this.#encryption.create({ ...change, presentedIds: change.presentedIds.filter(isBeside) }, store);
  }
}

const NO_PRINCIPAL: Room = { until: Number.MAX_SAFE_INTEGER, principal: '' };
// A request with more tokens has probably made them up, and must not cause a load for each.
const LOADED_AT_SIGHT = 20;
