import { indexEntry } from '../session/index-terms.js';
import { PRINCIPAL_NAME_INDEX_NAME, type Session } from '../session/session.js';
import type { SessionRecord } from '../session/session-record.js';
import { SessionRepository } from './session.repository.js';

/** A repository that also finds sessions by their principal, or by another index. */
export abstract class IndexedSessionRepository extends SessionRepository {
  /** The live sessions of a principal, in no particular order; empty when there are none. */
  findByPrincipalName(name: string): Promise<Session[]> {
    return this.findByIndex(PRINCIPAL_NAME_INDEX_NAME, name);
  }

  /**
   * The live sessions that an index lists under a value, in no particular order: an index of the option `indexes`, or
   * that of principals, `PRINCIPAL_NAME_INDEX_NAME`.
   */
  async findByIndex(indexName: string, value: string): Promise<Session[]> {
    const entry = indexEntry(indexName, value);
    if (!entry) return [];
    const records = await this.readRecords(() => this.lookUp(entry.indexName, entry.value));
    return records.map((record) => this.restore(record));
  }

  /**
   * The live sessions that an index lists under a value, in any order and each of them once. A session that is listed
   * during the whole call must not be missing, even if its id changes. An unknown index lists nothing. Name and value are
   * those of `IndexChanges`.
   */
  protected abstract lookUp(indexName: string, value: string): Promise<readonly SessionRecord[]>;
}
