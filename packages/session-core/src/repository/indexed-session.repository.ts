import { indexEntry } from '../session/index-terms.js';
import { PRINCIPAL_NAME_INDEX_NAME, type Session } from '../session/session.js';
import { type SessionInfo, signInTimeOf, toSessionInfo } from '../session/session-info.js';
import type { SessionRecord } from '../session/session-record.js';
import { isWellFormedIdOrToken } from '../session/session-token.js';
import { SessionRepository, storeError, wrapStoreErrors } from './session.repository.js';

/** A repository that also finds sessions by their principal, or by another index. */
export abstract class IndexedSessionRepository extends SessionRepository {
  /** The live sessions of a principal, in no particular order; empty when there are none. */
  findByPrincipalName(name: string): Promise<Session[]> {
    return this.findByIndex(PRINCIPAL_NAME_INDEX_NAME, name);
  }

  /**
   * The live sessions that an index lists under a value, in no particular order: an index of the option `indexes`, or
   * that of principals, `PRINCIPAL_NAME_INDEX_NAME`. All of them are loaded: where there may be many, use
   * `listByIndex()`.
   */
  async findByIndex(indexName: string, value: string): Promise<Session[]> {
    const entry = indexEntry(indexName, value);
    if (!entry) return [];
    const records = await this.readRecords(() => this.lookUp(entry.indexName, entry.value));
    return records.map((record) => this.restore(record));
  }

  /**
   * The live sessions that an index lists under a value, without their attributes, the latest sign-in first. The store is
   * asked for one page after the other, while you read. A session that is listed during the whole reading is not missing,
   * even if it is rotated or signs in again; one that signs in meanwhile comes last, and may come under both ids.
   * @throws SessionStoreError when the store failed
   */
  async *listByIndex(indexName: string, value: string): AsyncIterable<SessionInfo> {
    const entry = indexEntry(indexName, value);
    if (!entry) return;
    try {
      yield* this.list(entry.indexName, entry.value);
    } catch (error) {
      throw storeError(error);
    }
  }

  /**
   * How many sessions an index lists under a value. A session that has expired counts until the store has noticed that,
   * which can take a minute.
   * @throws SessionStoreError when the store failed
   */
  async countByIndex(indexName: string, value: string): Promise<number> {
    const entry = indexEntry(indexName, value);
    return entry ? wrapStoreErrors(() => this.count(entry.indexName, entry.value)) : 0;
  }

  /**
   * Ends every session that an index lists under a value at the moment of the call, and records its deleted event, except
   * for these ids. Returns how many this call ended. A session that is rotated meanwhile ends as well; one that signs in
   * later stays. When it fails, some may have ended: call it again.
   * @throws SessionStoreError when the store failed
   */
  async deleteByIndex(indexName: string, value: string, except: readonly string[] = []): Promise<number> {
    const entry = indexEntry(indexName, value);
    return entry ? wrapStoreErrors(() => this.endListed(entry.indexName, entry.value, except)) : 0;
  }

  /**
   * Ends a session if an index lists it under a value, in one step. False, and nothing happens, when there is no live
   * session with this id, or it is listed elsewhere.
   * @throws SessionStoreError when the store failed
   */
  async deleteIfListed(id: string, indexName: string, value: string): Promise<boolean> {
    const listed = indexEntry(indexName, value);
    if (!listed || !isWellFormedIdOrToken(id)) return false;
    const { outcome } = await wrapStoreErrors(() => this.write({ kind: 'delete', id, listed }));
    return outcome !== 'gone';
  }

  /**
   * The live sessions that an index lists under a value, in any order and each of them once. A session that is listed
   * during the whole call must not be missing, even if its id changes. An unknown index lists nothing. Name and value are
   * those of `IndexChanges`.
   */
  protected abstract lookUp(indexName: string, value: string): Promise<readonly SessionRecord[]>;

  /**
   * What `listByIndex()` returns. Override it, `count()` and `endListed()` in a store that need not load all sessions for
   * them.
   */
  protected async *list(indexName: string, value: string): AsyncIterable<SessionInfo> {
    const infos = (await this.lookUp(indexName, value)).map(toSessionInfo);
    yield* infos.toSorted((a, b) => signInTimeOf(b) - signInTimeOf(a));
  }

  /** What `countByIndex()` returns. */
  protected async count(indexName: string, value: string): Promise<number> {
    return (await this.lookUp(indexName, value)).length;
  }

  /** What `deleteByIndex()` does. */
  protected async endListed(indexName: string, value: string, except: readonly string[]): Promise<number> {
    let ended = 0;
    for (const { id } of await this.lookUp(indexName, value)) {
      if (except.includes(id)) continue;
      // Not without `listed`: the session may have got another principal in the meantime.
      const { outcome } = await this.write({ kind: 'delete', id, listed: { indexName, value } });
      if (outcome !== 'gone') ended++;
    }
    return ended;
  }
}
