import { PRINCIPAL_NAME_INDEX_NAME, type Session } from '../session/session.js';
import type { SessionRecord } from '../session/session-record.js';
import { SessionRepository } from './session.repository.js';

/** A repository that also finds sessions by what is in them. */
export abstract class IndexedSessionRepository extends SessionRepository {
  /** The live sessions of a principal, in no particular order; empty when there are none. */
  findByPrincipalName(name: string): Promise<Session[]> {
    return this.findByIndex(PRINCIPAL_NAME_INDEX_NAME, name);
  }

  /** The live sessions that an index lists under a value. `PRINCIPAL_NAME_INDEX_NAME` is an index. */
  async findByIndex(indexName: string, value: string): Promise<Session[]> {
    const records = await this.read(() => this.lookUp(indexName, value));
    return records.map((record) => this.restore(record));
  }

  /**
   * The live sessions that are listed under a value, in any order: each of them once, and none that is listed all the
   * time is missing, also one that changes its id meanwhile. An index that nobody has written to lists nothing.
   */
  protected abstract lookUp(indexName: string, value: string): Promise<readonly SessionRecord[]>;
}
