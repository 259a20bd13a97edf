import { type IndexEntry, indexEntry } from '../session/session-indexes.js';
import { PRINCIPAL_NAME_INDEX_NAME, type Session } from '../session/session.js';
import { sizesOf } from '../session/session-bounds.js';
import type { SessionRecord } from '../session/session-record.js';
import { type SessionInfo, signInTimeOf, toSessionInfo } from '../session/session-info.js';
import { isWellFormedIdOrToken } from '../session/session-token.js';
import { SessionRepository, storeCallsOf } from './session.repository.js';

const listingAsGiven = new WeakSet<IndexedSessionRepository>();

/** From now on, looks values up as they are, however long: for a repository of the index of another library. */
export function listAsGiven(repository: IndexedSessionRepository): void {
  listingAsGiven.add(repository);
}

/** A repository that also finds sessions by their principal, or by another index. */
export abstract class IndexedSessionRepository extends SessionRepository {
  /** Returns the live sessions of a principal in no particular order, or an empty array. */
  findByPrincipalName(name: string): Promise<Session[]> {
    return this.findByIndex(PRINCIPAL_NAME_INDEX_NAME, name);
  }

  /**
   * Returns the live sessions that an index of the option `indexes`, or `PRINCIPAL_NAME_INDEX_NAME`, lists under a
   * value, in no particular order. It loads all of them: if there may be many, use `listByIndex()`.
   */
  async findByIndex(indexName: string, value: string): Promise<Session[]> {
    const entry = this.#entry(indexName, value);
    if (!entry) return [];
    const records = await storeCallsOf(this).read('list', () => this.lookUp(entry.indexName, entry.value), sizesOf);
    return records.map((record) => this.restore(record));
  }

  /**
   * Returns the live sessions that an index lists under a value, the latest sign-in first, without their attributes,
   * page after page while you read. No session that stays listed is missed, even if it is rotated or signs in again.
   * One that signs in meanwhile comes last, and may appear under both ids.
   */
  async *listByIndex(indexName: string, value: string): AsyncIterable<SessionInfo> {
    const entry = this.#entry(indexName, value);
    if (!entry) return;
    const sessions = this.list(entry.indexName, entry.value)[Symbol.asyncIterator]();
    const calls = storeCallsOf(this);
    try {
      // The channel tells of the first page: how soon the others come is up to the caller.
      let next = await calls.read('list', () => sessions.next(), isFound);
      for (; !next.done; next = await calls.run(() => sessions.next())) yield next.value;
    } finally {
      await sessions.return?.();
    }
  }

  /**
   * Counts the sessions that an index lists under a value. An expired session counts until the store notices that it
   * has expired, which can take a minute.
   */
  async countByIndex(indexName: string, value: string): Promise<number> {
    const entry = this.#entry(indexName, value);
    if (!entry) return 0;
    const count = () => this.count(entry.indexName, entry.value);
    return storeCallsOf(this).read('count', count, (found) => ({ found }));
  }

  /**
   * Ends every session that an index lists under a value at the time of the call, except for these ids, and records
   * their deleted events. Returns how many this call ended. A session that is rotated meanwhile ends as well, and one
   * that signs in by a later request stays. In the index of principals, a request that began before the call signs the
   * principal in no more. If the call fails, some sessions may have ended: call it again.
   */
  async deleteByIndex(indexName: string, value: string, except: readonly string[] = []): Promise<number> {
    const entry = this.#entry(indexName, value);
    return entry ? storeCallsOf(this).endAll(() => this.endListed(entry.indexName, entry.value, except)) : 0;
  }

  /**
   * Ends a session if an index lists it under a value, in one atomic step. Returns false and changes nothing if no live
   * session has this id, or if the index lists it elsewhere.
   */
  async deleteIfListed(id: string, indexName: string, value: string): Promise<boolean> {
    const listed = this.#entry(indexName, value);
    if (!listed || !isWellFormedIdOrToken(id)) return false;
    const change = { kind: 'delete', id, listed, reason: 'revoked' } as const;
    const { outcome } = await storeCallsOf(this).write(change, () => this.write(change));
    return outcome !== 'gone';
  }

  #entry(indexName: string, value: string): IndexEntry | undefined {
    const entry = indexEntry(indexName, value);
    return entry && listingAsGiven.has(this) ? { ...entry, value } : entry;
  }

  /**
   * Returns the live sessions that an index lists under a value, in any order and each of them once. A session that is
   * listed during the whole call must not be missing, even if its id changes. An unknown index lists nothing. Name and
   * value are as in `IndexChanges`.
   */
  protected abstract lookUp(indexName: string, value: string): Promise<readonly SessionRecord[]>;

  /**
   * Implements `listByIndex()`. Override it, `count()` and `endListed()` in a store that can do them without loading
   * all sessions.
   */
  protected async *list(indexName: string, value: string): AsyncIterable<SessionInfo> {
    const infos = (await this.lookUp(indexName, value)).map(toSessionInfo);
    yield* infos.toSorted((a, b) => signInTimeOf(b) - signInTimeOf(a));
  }

  /** Implements `countByIndex()`. */
  protected async count(indexName: string, value: string): Promise<number> {
    return (await this.lookUp(indexName, value)).length;
  }

  /** Implements `deleteByIndex()`. Override it in a store that keeps the rule of `UpdateSession.begunAt`. */
  protected async endListed(indexName: string, value: string, except: readonly string[]): Promise<number> {
    let ended = 0;
    for (const { id } of await this.lookUp(indexName, value)) {
      if (except.includes(id)) continue;
      // `listed` keeps a session that got another principal in the meantime.
      const { outcome } = await this.write({ kind: 'delete', id, listed: { indexName, value }, reason: 'revoked' });
      if (outcome !== 'gone') ended++;
    }
    return ended;
  }
}

function isFound({ done }: IteratorResult<SessionInfo>): { found: number } {
  return { found: done ? 0 : 1 };
}
