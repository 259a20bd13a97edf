import type { SaveOutcome, Session } from '../session/session.js';
import type { TouchReply } from '../session/session-record.js';

/** Stores sessions. Absence is a value; an exception, `SessionStoreError`, means that the store itself failed. */
export abstract class SessionRepository {
  /**
   * A new session under a fresh id. No I/O: it exists in the store only once saved. `presentedId` is the id that a
   * client presented and that opened nothing; a late request of a session that has just changed its id is told by it.
   */
  abstract createSession(presentedId?: string): Session;

  /** The live session, or null when the id is unknown, ended, or cannot be an id. Does not count as an access. */
  abstract findById(id: string): Promise<Session | null>;

  /** What `findById()` says of each of these ids, in their order. A store that is asked over a network asks once. */
  findByIds(ids: readonly string[]): Promise<readonly (Session | null)[]> {
    return Promise.all(ids.map((id) => this.findById(id)));
  }

  /**
   * Writes what changed since the session was loaded, and renews it if anything did. `gone`: the session ended in the
   * meantime, stays ended, and nothing was written.
   */
  abstract save(session: Session): Promise<SaveOutcome>;

  /**
   * Records an access: the session expires `maxInactiveInterval` from now. `moved`: it does, but has changed its id since
   * it was loaded, so that the token of the one that was loaded opens nothing any more.
   */
  abstract touch(session: Session): Promise<TouchReply>;

  /** Ends the session and records its deleted event. False when there was no such session to end. */
  abstract deleteById(id: string): Promise<boolean>;
}
