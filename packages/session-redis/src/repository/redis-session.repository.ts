import { Inject, Injectable } from '@nestjs/common';
import { IndexedSessionRepository } from '@nest-session/core';
import type {
  CreateReply,
  CreateSession,
  SessionChange,
  SessionRecord,
  SessionRepositoryOptions,
  WriteReply,
} from '@nest-session/core/store';
import type { Redis } from 'ioredis';
import { isReply } from '../connection/reply.errors.js';
import { REQUEST_SESSION_SCRIPTS, SESSION_REPOSITORY_OPTIONS } from '../configuration/redis-session.tokens.js';
import { RequestConnection } from '../connection/request.connection.js';
import type { SessionKeys } from '../keys/session-keys.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import type { SessionScripts } from '../scripts/session/session.scripts.js';
import { toLiveRecord } from './redis-session.mapper.js';

/**
 * Keeps sessions in Redis. A load is one round trip, and so is a write: one script does all of it or nothing. A call
 * that fails, or takes longer than `commandTimeout`, throws a SessionStoreError; a write may then still take effect.
 */
@Injectable()
export class RedisSessionRepository extends IndexedSessionRepository {
  readonly #connection: RequestConnection;
  readonly #scripts: SessionScripts;
  readonly #partitions: SessionPartitions;

  /** @internal `RedisSessionModule` does this: inject the repository. */
  constructor(
    @Inject(RequestConnection) connection: RequestConnection,
    @Inject(REQUEST_SESSION_SCRIPTS) scripts: SessionScripts,
    @Inject(SessionPartitions) partitions: SessionPartitions,
    @Inject(SESSION_REPOSITORY_OPTIONS) options?: SessionRepositoryOptions,
  ) {
    super(options);
    this.#connection = connection;
    this.#scripts = scripts;
    this.#partitions = partitions;
  }

  /** Loads the live sessions with these ids, in one round trip. */
  protected async load(ids: readonly string[]): Promise<SessionRecord[]> {
    const replies = await this.#connection.run((client) => Promise.all(ids.flatMap((id) => this.#read(client, id))));
    const records = ids.map((id, i) => {
      const fields = replies[2 * i] as string[];
      const ttl = replies[2 * i + 1] as number;
      return ttl === NO_KEY ? undefined : toLiveRecord(id, fields, ttl);
    });
    return records.filter((record) => record !== undefined);
  }

  #read(client: Redis, id: string): Promise<unknown>[] {
    const keys = this.#partitions.of(id);
    // HGETALL in upper case: ioredis then makes no object of the reply. The shadow key last: a session that ends between
    // the two commands counts as ended.
    return [client.call('HGETALL', keys.session(id)).catch(noFieldsIfForeign), client.pttl(keys.shadow(id))];
  }

  protected async lookUp(indexName: string, value: string): Promise<SessionRecord[]> {
    for (let reads = 1; ; reads++) {
      const listed = await this.#inAll((client, keys) => client.smembers(keys.index(indexName, value)));
      const ids = listed.flat();
      const records = ids.length > 0 ? await this.load(ids) : [];
      const alive = new Set(records.map(({ id }) => id));
      const dead = ids.filter((id) => !alive.has(id));
      if (dead.length === 0 || reads === MOST_READS) return records;
      // The session was rotated between the two reads, and the index has its new id. Or an outage longer than the grace
      // period hid its end. Either way the id never comes back.
      await this.#inAll((client, keys) => client.srem(keys.index(indexName, value), ...dead));
    }
  }

  protected override async readClock(): Promise<number> {
    const [seconds, microseconds] = await this.#connection.run((client) => client.time());
    return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
  }

  /** Whether both ids are in one partition: one script changes an id, and it can use the keys of one partition only. */
  protected override mayReplace(id: string, replaced: string): boolean {
    return this.#partitions.of(id) === this.#partitions.of(replaced);
  }

  protected write(change: SessionChange): Promise<WriteReply> {
    return this.#connection.run<WriteReply>((client, proceed) => {
      switch (change.kind) {
        case 'create':
          return this.#create(client, change, proceed);
        case 'update':
          return this.#scripts.save(change);
        case 'touch':
          return this.#scripts.touch(change.id);
        case 'delete':
          return this.#scripts.delete(change.id);
      }
    });
  }

  async #create(client: Redis, change: CreateSession, proceed: () => void): Promise<CreateReply> {
    const isBeside = (presented: string) => this.mayReplace(change.id, presented);
    const elsewhere = change.presentedIds.filter((presented) => !isBeside(presented));
    if (elsewhere.length === 0) return this.#scripts.create(change);
    // The script cannot read these marks. Reading them first is enough: had the session been rotated only after this
    // request looked for it, the request would have found it.
    const marks = await Promise.all(
      elsewhere.map((presented) => client.exists(this.#partitions.of(presented).forwardingMark(presented))),
    );
    if (marks.includes(1)) return { outcome: 'gone' };
    proceed();
    return this.#scripts.create({ ...change, presentedIds: change.presentedIds.filter(isBeside) });
  }

  /** The replies to a command in each partition, in one round trip. */
  #inAll<T>(ask: (client: Redis, keys: SessionKeys) => Promise<T>): Promise<T[]> {
    return this.#connection.run((client) => Promise.all(this.#partitions.all.map((keys) => ask(client, keys))));
  }
}

// How often a look-up reads an index whose sessions are being rotated.
const MOST_READS = 5;

// The reply of PTTL for a key that does not exist.
const NO_KEY = -2;

/** A foreign key in the place of a session hash is no session. */
function noFieldsIfForeign(error: unknown): string[] {
  if (isReply(error, 'WRONGTYPE')) return [];
  throw error;
}
