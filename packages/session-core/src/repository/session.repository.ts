import type { AttributeSerializer } from '../session/attribute.serializer.js';
import { JsonAttributeSerializer } from '../session/json-attribute.serializer.js';
import { LimitedAttributeSerializer } from '../session/limited-attribute.serializer.js';
import type { SaveOutcome, Session } from '../session/session.js';
import { SessionIds } from '../session/session-ids.js';
import { isWellFormedSessionId } from '../session/session-token.js';
import type { SessionChange, TouchOutcome, WriteReply } from '../session/session-change.js';
import type { SessionRecord } from '../session/session-record.js';
import type { SessionWriter } from '../session/session-writer.js';
import { TrackedSession } from '../session/tracked-session.js';
import type { SessionTimeouts } from '../session/tracked-timeouts.js';
import type { UndecodablePolicy } from '../session/undecodable-policy.js';
import { dropUndecodable } from './drop-undecodable.js';
import { wrapStoreErrors } from './store.errors.js';

/** What a repository has to know of the application. `SESSION_OPTIONS` is such. */
export interface SessionRepositoryOptions {
  /** Of new sessions: seconds without access after which they expire; -1: never. @default 1800 */
  readonly timeout?: number | undefined;
  /** Of new sessions: seconds from their creation after which they expire; -1: never. @default -1 */
  readonly absoluteTimeout?: number | undefined;
  /** @default hashed, of 256 random bits */
  readonly ids?: SessionIds | undefined;
  /** @default JsonAttributeSerializer */
  readonly serializer?: AttributeSerializer | undefined;
  /** Bytes that the text of an attribute may have. @default no limit */
  readonly maxAttributeSize?: number | undefined;
  /** What happens to a session with a value that the serializer cannot decode. @default 'drop-attribute' */
  readonly undecodable?: UndecodablePolicy | undefined;
}

/** What a store implements of its repository, for checks that call a store directly. */
export interface StorePrimitives {
  /** The live sessions of these ids, in any order. */
  load(ids: readonly string[]): Promise<readonly SessionRecord[]>;
  /** One atomic step. Rejects with what the store throws, not with a `SessionStoreError` around it. */
  write(change: SessionChange): Promise<WriteReply>;
  /** Whether a session may change its id from `replaced` to `id`. */
  mayReplace(id: string, replaced: string): boolean;
}

let toPrimitives: (repository: SessionRepository) => StorePrimitives;

/** Gives the methods that a store implements, which are protected in its repository. Applications do not call them. */
export function storePrimitivesOf(repository: SessionRepository): StorePrimitives {
  return toPrimitives(repository);
}

/**
 * Stores sessions. Absence is a value; an exception, `SessionStoreError`, means that the store itself failed. What a
 * store has to do is in `load()` and `write()`; what a session is, and remembers, is the same for all of them.
 *
 * `load()` and `write()` are called at any time, also while others run. What they throw is best a `SessionStoreError`
 * whose reason, which is logged, quotes no value; anything else becomes the `cause` of one.
 */
export abstract class SessionRepository {
  static {
    toPrimitives = (repository) => ({
      load: (ids) => repository.load(ids),
      write: (change) => repository.write(change),
      mayReplace: (id, replaced) => repository.mayReplace(id, replaced),
    });
  }

  readonly #ids: SessionIds;
  readonly #timeouts: SessionTimeouts;
  readonly #writer: SessionWriter;

  protected constructor(options: SessionRepositoryOptions = {}) {
    const { timeout = 1800, absoluteTimeout = -1, ids = new SessionIds(), maxAttributeSize = Infinity } = options;
    this.#ids = ids;
    this.#timeouts = { maxInactiveInterval: timeout, absoluteTimeout };
    this.#writer = {
      undecodable: options.undecodable ?? 'drop-attribute',
      serializer: new LimitedAttributeSerializer(options.serializer ?? new JsonAttributeSerializer(), maxAttributeSize),
      write: (change) => wrapStoreErrors(() => this.write(change)),
      drawKey: (replaced) => this.#ids.draw(replaced === undefined ? undefined : (id) => this.mayReplace(id, replaced)),
      shown: (id) => ids.shown(id),
    };
  }

  /**
   * A new session under a fresh id. No I/O: it exists in the store only once saved. `presentedIds` are those that a
   * client presented and that opened nothing; a late request of a session that has just changed its id is told by them.
   */
  createSession(presentedIds: readonly string[] = []): Session {
    return TrackedSession.create(this.#writer, this.#timeouts, presentedIds);
  }

  /** The live session, or null when the id is unknown, ended, or cannot be an id. Does not count as an access. */
  async findById(id: string): Promise<Session | null> {
    const [session] = await this.findByIds([id]);
    return session ?? null;
  }

  /** What `findById()` says of each of these ids, in their order; a store that is asked over a network is asked once. */
  async findByIds(ids: readonly string[]): Promise<(Session | null)[]> {
    const wellFormed = [...new Set(ids.filter(isWellFormedSessionId))];
    const records = wellFormed.length > 0 ? await this.read(() => this.load(wellFormed)) : [];
    const found = new Map(records.map((record) => [record.id, record]));
    return ids.map((id) => {
      const record = found.get(id);
      return record ? this.restore(record) : null;
    });
  }

  /**
   * Writes what changed since the session was loaded, and renews it if anything did. `gone`: the session ended in the
   * meantime, stays ended, and nothing was written.
   */
  async save(session: Session): Promise<SaveOutcome> {
    return TrackedSession.of(session).save();
  }

  /**
   * Records an access: the session expires `maxInactiveInterval` from now. `forwarded`: it does, but has changed its id
   * since it was loaded, so that the token it was loaded by opens nothing any more. `gone`: it has ended.
   * @throws SessionStoreError when the store failed
   */
  async touch(session: Session): Promise<TouchOutcome> {
    const { storedId: id } = TrackedSession.of(session);
    if (id === undefined) return 'gone';
    const { outcome } = await this.#writer.write({ kind: 'touch', id });
    return outcome === 'touched' || outcome === 'forwarded' ? outcome : 'gone';
  }

  /** Ends the session and records its deleted event. False when there was no such session to end. */
  async deleteById(id: string): Promise<boolean> {
    if (!isWellFormedSessionId(id)) return false;
    const { outcome } = await this.#writer.write({ kind: 'delete', id });
    return outcome !== 'gone';
  }

  /** Those of these sessions that are alive, in any order: an id that has been changed is that of none. No id comes twice. */
  protected abstract load(ids: readonly string[]): Promise<readonly SessionRecord[]>;

  /**
   * One atomic step, which sees and leaves whole sessions only, whatever runs at the same time on whatever node: all of it
   * is done, and what followed from it recorded, or nothing. The rules are those of `SessionChange`.
   */
  protected abstract write(change: SessionChange): Promise<WriteReply>;

  /** Whether a session may change its id to this fresh one; for stores that keep some sessions apart. */
  protected mayReplace(_id: string, _replaced: string): boolean {
    return true;
  }

  /**
   * The records that `load()`, or a look-up of the store, answers with; without those whose session had to be ended
   * because a value in it cannot be decoded.
   */
  protected async read(call: () => Promise<readonly SessionRecord[]>): Promise<readonly SessionRecord[]> {
    const records = await wrapStoreErrors(call);
    return this.#writer.undecodable === 'drop-session' ? dropUndecodable(records, this.#writer) : records;
  }

  /** The session of a record. */
  protected restore(record: SessionRecord): Session {
    return TrackedSession.restore(this.#writer, record);
  }
}
