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
import type { ChainableCommander, Redis } from 'ioredis';
import { isReply } from '../connection/reply.errors.js';
import { REQUEST_SESSION_SCRIPTS, SESSION_REPOSITORY_OPTIONS } from '../configuration/redis-session.tokens.js';
import { RequestConnection } from '../connection/request.connection.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import type { SessionScripts } from '../scripts/session/session.scripts.js';
import { toSessionRecord } from './redis-session.mapper.js';

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
    const replies = await this.#pipeline((pipeline) => {
      for (const id of ids) {
        const keys = this.#partitions.of(id);
        // The shadow key last: a session that ends between the two commands counts as ended.
        pipeline.hgetall(keys.session(id)).pttl(keys.shadow(id));
      }
    }, NO_HASH);
    const records = ids.map((id, i) => {
      const hash = replies[2 * i] as Record<string, string>;
      const ttl = replies[2 * i + 1] as number;
      return ttl === NO_KEY ? undefined : toSessionRecord(id, hash, ttl);
    });
    return records.filter((record) => record !== undefined);
  }

  protected async lookUp(indexName: string, value: string): Promise<SessionRecord[]> {
    for (let reads = 1; ; reads++) {
      const listed = await this.#pipeline((pipeline) => {
        for (const keys of this.#partitions.all) pipeline.smembers(keys.index(indexName, value));
      });
      const ids = (listed as string[][]).flat();
      const records = ids.length > 0 ? await this.load(ids) : [];
      const alive = new Set(records.map(({ id }) => id));
      const dead = ids.filter((id) => !alive.has(id));
      if (dead.length === 0 || reads === MOST_READS) return records;
      // The session was rotated between the two reads, and the index has its new id. Or an outage longer than the grace
      // period hid its end. Either way the id never comes back.
      await this.#pipeline((pipeline) => {
        for (const keys of this.#partitions.all) pipeline.srem(keys.index(indexName, value), ...dead);
      });
    }
  }

  /** Whether both ids are in one partition: one script changes an id, and it can use the keys of one partition only. */
  protected override mayReplace(id: string, replaced: string): boolean {
    return this.#partitions.of(id) === this.#partitions.of(replaced);
  }

  protected write(change: SessionChange): Promise<WriteReply> {
    return this.#run<WriteReply>((client) => {
      switch (change.kind) {
        case 'create':
          return this.#create(client, change);
        case 'update':
          return this.#scripts.save(change);
        case 'touch':
          return this.#scripts.touch(change.id);
        case 'delete':
          return this.#scripts.delete(change.id);
      }
    });
  }

  async #create(client: Redis, change: CreateSession): Promise<CreateReply> {
    const isBeside = (presented: string) => this.mayReplace(change.id, presented);
    const elsewhere = change.presentedIds.filter((presented) => !isBeside(presented));
    // The script cannot read these marks. Reading them first is enough: had the session been rotated only after this
    // request looked for it, the request would have found it.
    const marks = await Promise.all(
      elsewhere.map((presented) => client.exists(this.#partitions.of(presented).forwardingMark(presented))),
    );
    if (marks.includes(1)) return { outcome: 'gone' };
    return this.#scripts.create({ ...change, presentedIds: change.presentedIds.filter(isBeside) });
  }

  /** The replies of a pipeline, in order. `foreign`: the reply for a command that found a key of a foreign type. */
  #pipeline(fill: (pipeline: ChainableCommander) => void, foreign?: unknown): Promise<unknown[]> {
    return this.#run(async (client) => {
      const pipeline = client.pipeline();
      fill(pipeline);
      return ((await pipeline.exec()) ?? []).map(([error, value]) => {
        if (foreign !== undefined && error && isReply(error, 'WRONGTYPE')) return foreign;
        if (error) throw error;
        return value;
      });
    });
  }

  #run<T>(command: (client: Redis) => Promise<T>): Promise<T> {
    return this.#connection.run(command);
  }
}

// How often a look-up reads an index whose sessions are being rotated.
const MOST_READS = 5;

// A foreign key in the place of a session hash is no session.
const NO_HASH = {};

// The reply of PTTL for a key that does not exist.
const NO_KEY = -2;
