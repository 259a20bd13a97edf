import {
  type AttributeChanges,
  type AttributeSerializer,
  IndexedSessionRepository,
  isWellFormedSessionId,
  PRINCIPAL_NAME_INDEX_NAME,
  type SaveOutcome,
  type Session,
  type SessionChanges,
  type SessionIds,
  type SessionKey,
  type SessionTimeouts,
  type SessionWriter,
  type TouchReply,
  TrackedSession,
  type WriteReply,
} from '@nest-session/core';
import type { Redis } from 'ioredis';
import { isReply } from '../connection/reply.errors.js';
import type { RequestConnection } from '../connection/request.connection.js';
import type { SessionKeys } from '../keys/session.keys.js';
import type { Pairs, SessionScripts } from '../scripts/session.scripts.js';
import { toSessionRecord } from './redis-session.mapper.js';

/** What a repository is made of. */
export interface RedisSessionRepositoryParts {
  readonly connection: RequestConnection;
  readonly scripts: SessionScripts;
  readonly keys: SessionKeys;
  readonly serializer: AttributeSerializer;
  readonly ids: SessionIds;
  /** Those of new sessions. */
  readonly timeouts: SessionTimeouts;
}

/**
 * Sessions in Redis. Loading is one round trip, and so is each change, which one script makes or refuses as a whole. No
 * method answers later than the command timeout; what then is unknown is a SessionStoreError.
 */
export class RedisSessionRepository extends IndexedSessionRepository implements SessionWriter {
  readonly #parts: RedisSessionRepositoryParts;

  constructor(parts: RedisSessionRepositoryParts) {
    super();
    this.#parts = parts;
  }

  get serializer(): AttributeSerializer {
    return this.#parts.serializer;
  }

  nextKey(): SessionKey {
    return this.#parts.ids.draw();
  }

  createSession(presentedId?: string): Session {
    return TrackedSession.create(this, this.#parts.timeouts, presentedId);
  }

  async findById(id: string): Promise<Session | null> {
    const [session] = await this.findByIds([id]);
    return session ?? null;
  }

  override async findByIds(ids: readonly string[]): Promise<readonly (Session | null)[]> {
    const known = ids.filter(isWellFormedSessionId);
    const sessions = await this.#load(known);
    return ids.map((id) => sessions[known.indexOf(id)] ?? null);
  }

  async save(session: Session): Promise<SaveOutcome> {
    return TrackedSession.of(session).save();
  }

  async touch(session: Session): Promise<TouchReply> {
    const { storedId } = TrackedSession.of(session);
    if (storedId === undefined) return 'gone';
    const [word] = await this.#run(() => this.#parts.scripts.touch(storedId));
    return word;
  }

  async deleteById(id: string): Promise<boolean> {
    if (!isWellFormedSessionId(id)) return false;
    const [word] = await this.#run(() => this.#parts.scripts.delete(id));
    return word === 'deleted';
  }

  async findByPrincipalName(name: string): Promise<Session[]> {
    return this.findByIndex(PRINCIPAL_NAME_INDEX_NAME, name);
  }

  async findByIndex(indexName: string, value: string): Promise<Session[]> {
    const key = this.#parts.keys.index(indexName, value);
    const found = new Map<string, Session | undefined>();
    for (let look = 0; look < LOOKS; look++) {
      const ids = await this.#run((client) => client.smembers(key));
      const unseen = ids.filter((id) => !found.has(id));
      const sessions = await this.#load(unseen);
      unseen.forEach((id, i) => found.set(id, sessions[i]));
      // One that was gone may have changed its id between the two, and stands in the index under the new one.
      if (!sessions.includes(undefined)) break;
    }
    // What an outage longer than the grace has left: its session is over, and an id never comes back.
    const dead = [...found.keys()].filter((id) => found.get(id) === undefined);
    if (dead.length > 0) await this.#run((client) => client.srem(key, ...dead));
    return [...found.values()].filter((session) => session !== undefined);
  }

  async write(changes: SessionChanges): Promise<WriteReply> {
    const { scripts } = this.#parts;
    switch (changes.kind) {
      case 'create': {
        const { set, indexes } = this.#encoded(changes.attributes);
        const entered = indexes.filter(([, value]) => value !== '');
        const create = { ...changes, attributes: set, indexes: entered };
        const [word, creationTime] = await this.#run(() => scripts.create(create));
        return word === 'created' ? { outcome: 'saved', creationTime: Number(creationTime) } : { outcome: word };
      }
      case 'update': {
        const { id, newId, maxInactiveInterval, absoluteTimeout, keepsIdle, expected } = changes;
        const { set, removed, indexes } = this.#encoded(changes.attributes);
        const given = { id, newId, maxInactiveInterval, absoluteTimeout, keepsIdle, expected };
        const save = { ...given, attributes: set, removed, indexes };
        const [word, current] = await this.#run(() => scripts.save(save));
        return word === 'conflict' ? { outcome: word, current: current ?? undefined } : { outcome: word };
      }
      case 'delete': {
        const [word] = await this.#run(() => scripts.delete(changes.id));
        return { outcome: word === 'deleted' ? 'saved' : 'gone' };
      }
    }
  }

  /** The live sessions of some ids, undefined for each that is none; one round trip. */
  async #load(ids: readonly string[]): Promise<(Session | undefined)[]> {
    if (ids.length === 0) return [];
    const { keys } = this.#parts;
    const replies = await this.#run(async (client) => {
      const pipeline = client.pipeline();
      // The shadow last: a session that ends between the two is over, and not a hash without its end.
      for (const id of ids) pipeline.hgetall(keys.session(id)).pttl(keys.shadow(id));
      return valuesOf(await pipeline.exec());
    });
    return ids.map((id, i) => {
      const hash = replies[2 * i] as Record<string, string>;
      const ttl = replies[2 * i + 1] as number;
      const record = ttl === NO_KEY ? undefined : toSessionRecord(id, hash, ttl);
      return record && TrackedSession.restore(this, record);
    });
  }

  #encoded(changes: AttributeChanges): { set: Pairs; removed: string[]; indexes: Pairs } {
    const set = [...changes].filter((change): change is [string, string] => change[1] !== null);
    const removed = [...changes].filter(([, text]) => text === null).map(([name]) => name);
    const indexes = [...changes]
      .filter(([name]) => name === PRINCIPAL_NAME_INDEX_NAME)
      .map(([name, text]) => [name, this.#indexValue(text)] as const);
    return { set, removed, indexes };
  }

  #indexValue(text: string | null): string {
    const value = text === null ? undefined : this.serializer.deserialize(text);
    return typeof value === 'string' ? value : '';
  }

  #run<T>(command: (client: Redis) => Promise<T>): Promise<T> {
    return this.#parts.connection.run(command);
  }
}

// How often an index is read while sessions in it keep changing their ids.
const LOOKS = 5;

// What PTTL says of a key that does not exist.
const NO_KEY = -2;

function valuesOf(replies: [error: Error | null, value: unknown][] | null): unknown[] {
  return (replies ?? []).map(([error, value]) => {
    // Somebody else's key where a session should be: there is none.
    if (error && isReply(error, 'WRONGTYPE')) return {};
    if (error) throw error;
    return value;
  });
}
