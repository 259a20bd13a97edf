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
 * Sessions in Redis. Loading is one round trip, and so is each change, which one script makes or refuses as a whole. No
 * method answers later than the command timeout; what then is unknown is a SessionStoreError.
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

  /** One round trip. */
  protected async load(ids: readonly string[]): Promise<SessionRecord[]> {
    const replies = await this.#inOneTrip((pipeline) => {
      for (const id of ids) {
        const keys = this.#partitions.of(id);
        // The shadow last: a session that ends between the two is over, and not a hash without its end.
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
    for (let look = 1; ; look++) {
      const listed = await this.#inOneTrip((pipeline) => {
        for (const keys of this.#partitions.all) pipeline.smembers(keys.index(indexName, value));
      });
      const ids = (listed as string[][]).flat();
      const records = ids.length > 0 ? await this.load(ids) : [];
      const alive = new Set(records.map(({ id }) => id));
      const dead = ids.filter((id) => !alive.has(id));
      if (dead.length === 0 || look === LOOKS) return records;
      // One of these has changed its id between the two, and stands in the index under the new one; or its end was
      // missed, by an outage longer than the grace. In either case the id never comes back.
      await this.#inOneTrip((pipeline) => {
        for (const keys of this.#partitions.all) pipeline.srem(keys.index(indexName, value), ...dead);
      });
    }
  }

  /** An id is changed by one script, and a script reaches the keys of one partition. */
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
    // The script does not reach these, and need not: without the mark, the request would have found the session.
    const marks = await Promise.all(
      elsewhere.map((presented) => client.exists(this.#partitions.of(presented).forwardingMark(presented))),
    );
    if (marks.includes(1)) return { outcome: 'gone' };
    return this.#scripts.create({ ...change, presentedIds: change.presentedIds.filter(isBeside) });
  }

  /** The replies to what is put into a pipeline, in its order; `foreign`: of what somebody else's key is in the way of. */
  #inOneTrip(fill: (pipeline: ChainableCommander) => void, foreign?: unknown): Promise<unknown[]> {
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

// How often an index is read while sessions in it keep changing their ids.
const LOOKS = 5;

// There is no session where there is somebody else's key.
const NO_HASH = {};

// What PTTL says of a key that does not exist.
const NO_KEY = -2;
