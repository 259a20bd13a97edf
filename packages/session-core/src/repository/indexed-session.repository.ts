import type { Session } from '../session/session.js';
import { SessionRepository } from './session.repository.js';

/** A repository that also finds sessions by what is in them. */
export abstract class IndexedSessionRepository extends SessionRepository {
  /** The live sessions of a principal, in no particular order; empty when there are none. */
  abstract findByPrincipalName(name: string): Promise<Session[]>;

  /** The live sessions that an index lists under a value. `PRINCIPAL_NAME_INDEX_NAME` is an index. */
  abstract findByIndex(indexName: string, value: string): Promise<Session[]>;
}
