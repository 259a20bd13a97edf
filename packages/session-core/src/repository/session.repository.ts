import { SessionStoreError } from '../errors/session.errors.js';
import type { SecurityEvents } from '../security-events/security.events.js';
import type { AttributeSerializer } from '../session/attribute.serializer.js';
import { AttributeUpdates } from '../session/attribute-updates.js';
import { JsonAttributeSerializer } from '../session/json-attribute.serializer.js';
import { type SessionBounds, UNBOUNDED } from '../session/session-bounds.js';
import { PRINCIPAL_NAME_INDEX_NAME, type SaveOutcome, type Session } from '../session/session.js';
import { isWellFormedIdOrToken, SessionIds } from '../session/session-token.js';
import { SessionIndexes } from '../session/session-indexes.js';
import type { MaxSessions } from '../session/session-limit.js';
import type { SessionChange, TouchOutcome, WriteReply } from '../session/session-change.js';
import type { SessionRecord } from '../session/session-record.js';
import type { SessionWriter } from '../session/session-writer.js';
import { TrackedSession } from '../session/tracked-session.js';
import type { UndecodablePolicy } from '../session/stored-attributes.js';
import { dropUndecodable } from './drop-undecodable.js';
import { WarnOnce } from '../logging/warn-once.js';

/** The options of the application that a repository needs; `SESSION_OPTIONS` has them. */
export interface SessionRepositoryOptions {
  /** The idle timeout of sessions in seconds once somebody is signed in; -1: none. @default 1800 */
  readonly timeout?: number | undefined;
  /** The idle timeout of new sessions in seconds, until somebody signs in; -1: none. @default timeout */
  readonly anonymousTimeout?: number | undefined;
  /** The absolute timeout of new sessions in seconds; -1: none. @default -1 */
  readonly absoluteTimeout?: number | undefined;
  /** Draws tokens and makes ids from them. @default tokens of 256 random bits, hashed */
  readonly ids?: SessionIds | undefined;
  /** @default JsonAttributeSerializer */
  readonly serializer?: AttributeSerializer | undefined;
  /** How many attributes a session may have. @default no limit */
  readonly maxAttributes?: number | undefined;
  /** Bytes that the name of an attribute may take. @default no limit */
  readonly maxAttributeNameSize?: number | undefined;
  /** Bytes that the text of one attribute may take. @default no limit */
  readonly maxAttributeSize?: number | undefined;
  /** Milliseconds for which `updateAttribute()` waits for other updates of the attribute. @default 5000 */
  readonly updateTimeout?: number | undefined;
  /** Bytes that the names and texts of all attributes of a session may take. @default no limit */
  readonly maxSessionSize?: number | undefined;
  /** The attributes that no sign-in keeps. @default none */
  readonly visitorAttributes?: readonly string[] | undefined;
  /** How many live sessions a principal may have. @default any number */
  readonly maxSessions?: MaxSessions | undefined;
  /** What happens to a session with a value that the serializer cannot decode. @default 'drop-attribute' */
  readonly undecodable?: UndecodablePolicy | undefined;
  /** Under what sessions are listed. @default the index of principals alone */
  readonly indexes?: SessionIndexes | undefined;
  /** Where to report what an attacker may have done. @default nowhere */
  readonly securityEvents?: SecurityEvents | undefined;
}

/** What a store implements of its repository, for checks that call a store directly. */
export interface StorePrimitives {
  /** The live sessions of these ids, in any order. */
  load(ids: readonly string[], only?: readonly string[]): Promise<readonly SessionRecord[]>;
  /** One atomic step. Rejects with what the store throws, not with a `SessionStoreError` around it. */
  write(change: SessionChange): Promise<WriteReply>;
  /** Whether a session may change its id from `replaced` to `id`. */
  mayReplace(id: string, replaced: string): boolean;
}

let toPrimitives: (repository: SessionRepository) => StorePrimitives;
let toPrincipals: typeof findPrincipals;

/** Gives the methods that a store implements, which are protected in its repository. Applications do not call them. */
export function storePrimitivesOf(repository: SessionRepository): StorePrimitives {
  return toPrimitives(repository);
}

/** `findByIds()`, but of the attributes only the principal is known: do not change these sessions. */
export function findPrincipals(repository: SessionRepository, ids: readonly string[]): Promise<(Session | null)[]> {
  return toPrincipals(repository, ids);
}

/**
 * Creates, finds, saves and deletes sessions. A session that does not exist is a result, not an error: methods throw
 * `SessionStoreError` only when the store failed.
 *
 * To write a store, extend this class and implement `load()` and `write()`, which may be called at any time and
 * concurrently. Throw a `SessionStoreError` whose reason, which is logged, quotes no value; any other error becomes the
 * `cause` of one.
 */
export abstract class SessionRepository {
  static {
    toPrimitives = (repository) => ({
      load: (ids, only) => repository.load(ids, only),
      write: (change) => repository.write(change),
      mayReplace: (id, replaced) => repository.mayReplace(id, replaced),
    });
    toPrincipals = (repository, ids) => repository.#find(ids, [PRINCIPAL_NAME_INDEX_NAME]);
  }

  readonly #ids: SessionIds;
  readonly #writer: SessionWriter;

  protected constructor(options: SessionRepositoryOptions = {}) {
    const { timeout = 1800, anonymousTimeout = timeout, absoluteTimeout = -1, ids = new SessionIds() } = options;
    this.#ids = ids;
    const write = (change: SessionChange) => wrapStoreErrors(() => this.write(change));
    this.#writer = {
      undecodable: options.undecodable ?? 'drop-attribute',
      warnings: new WarnOnce(),
      indexes: options.indexes ?? new SessionIndexes(),
      bounds: boundsOf(options),
      timeouts: { maxInactiveInterval: timeout, absoluteTimeout },
      anonymousTimeout,
      visitorAttributes: options.visitorAttributes ?? [],
      maxSessions: options.maxSessions,
      updates: new AttributeUpdates(write, options.updateTimeout ?? 5000),
      serializer: options.serializer ?? new JsonAttributeSerializer(),
      write,
      drawKey: (replaced) => this.#ids.draw(replaced === undefined ? undefined : (id) => this.mayReplace(id, replaced)),
      shown: (id) => ids.shown(id),
      securityEvents: options.securityEvents,
    };
  }

  /**
   * A new session with a fresh id. It exists in the store only once it is saved.
   * @param presentedIds the ids that the client presented and that opened nothing. They tell the store that the request
   *   is a late one of a session that was just rotated.
   */
  createSession(presentedIds: readonly string[] = []): Session {
    const { timeouts, anonymousTimeout: maxInactiveInterval } = this.#writer;
    return TrackedSession.create(this.#writer, { ...timeouts, maxInactiveInterval }, presentedIds);
  }

  /**
   * The live session with an id, or null when there is none. Does not count as an access.
   * @throws SessionStoreError when the store failed
   */
  async findById(id: string): Promise<Session | null> {
    const [session] = await this.findByIds([id]);
    return session ?? null;
  }

  /**
   * The live sessions with these ids, in their order, with null where there is none. One round trip to the store, or two
   * for many ids.
   * @throws SessionStoreError when the store failed
   */
  async findByIds(ids: readonly string[]): Promise<(Session | null)[]> {
    return this.#find(ids);
  }

  async #find(ids: readonly string[], only?: readonly string[]): Promise<(Session | null)[]> {
    const wellFormed = ids.filter(isWellFormedIdOrToken);
    // Most requests present one id.
    const distinct = wellFormed.length > 1 ? [...new Set(wellFormed)] : wellFormed;
    const records = distinct.length > 0 ? await this.readRecords(() => this.load(distinct, only)) : [];
    const found = new Map(records.map((record) => [record.id, record]));
    return ids.map((id) => {
      const record = found.get(id);
      return record ? this.restore(only ? withOnly(only, record) : record) : null;
    });
  }

  /**
   * Saves what changed since the session was loaded, and renews its idle timeout if anything changed. `gone`: the
   * session ended in the meantime, and nothing was saved.
   * @throws SessionStoreError when the store failed; SessionAttributeError or SessionBoundError when a value cannot be
   *   stored; SessionCreationRefusedError when the option `mayCreate` refuses a new session of a request;
   *   SessionGoneError when the save should have created a session or signed somebody in
   */
  async save(session: Session): Promise<SaveOutcome> {
    return TrackedSession.of(session).save();
  }

  /**
   * Renews the idle timeout of a session. `forwarded`: the session was touched but rotated since it was loaded, so that
   * the token by which it was loaded opens nothing any more. `gone`: the session has ended.
   * @throws SessionStoreError when the store failed
   */
  async touch(session: Session): Promise<TouchOutcome> {
    const { storedId: id } = TrackedSession.of(session);
    if (id === undefined) return 'gone';
    const { outcome } = await this.#writer.write({ kind: 'touch', id });
    return outcome === 'touched' || outcome === 'forwarded' ? outcome : 'gone';
  }

  /**
   * Ends a session and records its deleted event. False when there was no live session with this id.
   * @throws SessionStoreError when the store failed
   */
  async deleteById(id: string): Promise<boolean> {
    if (!isWellFormedIdOrToken(id)) return false;
    const { outcome } = await this.#writer.write({ kind: 'delete', id });
    return outcome !== 'gone';
  }

  /**
   * The time by the clock that stamps the sessions, in epoch milliseconds. Compare their times with nothing else.
   * @throws SessionStoreError when the store failed
   */
  now(): Promise<number> {
    return wrapStoreErrors(() => this.readClock());
  }

  /** The time by the store's clock. Override it in a store that has a clock of its own. */
  protected async readClock(): Promise<number> {
    return Date.now();
  }

  /**
   * Ends every session that was created or signed in to until now, with a deleted event for each. Within two seconds no
   * instance finds one of them; the store ends them one after the other, and records their events, in the background.
   * @throws SessionStoreError when the store failed, or cannot do this
   */
  endEverySession(): Promise<void> {
    return wrapStoreErrors(() => this.endEvery());
  }

  /** What `endEverySession()` does; resolves when no session that began before the call will be found any more. */
  protected endEvery(): Promise<void> {
    throw new SessionStoreError('The repository of the sessions does not implement endEvery()');
  }

  /**
   * The live sessions with these ids, in any order. The ids are distinct. Old ids of rotated sessions find nothing.
   * @param only the names of the attributes that the caller reads; unset: all. A store that can, saves itself the others.
   */
  protected abstract load(ids: readonly string[], only?: readonly string[]): Promise<readonly SessionRecord[]>;

  /**
   * Makes one change and records its events, atomically: either all of it or nothing, whatever other instances do at
   * the same time. The rules are those of `SessionChange`.
   */
  protected abstract write(change: SessionChange): Promise<WriteReply>;

  /** Whether a session may be rotated to this fresh id. Override it in a store that partitions its sessions by id. */
  protected mayReplace(_id: string, _replaced: string): boolean {
    return true;
  }

  /**
   * Calls the store for records, and wraps its errors. With `undecodable: 'drop-session'`, the sessions with a value
   * that cannot be decoded are ended and left out.
   */
  protected readRecords(call: () => Promise<readonly SessionRecord[]>): Promise<readonly SessionRecord[]> {
    const records = wrapStoreErrors(call);
    if (this.#writer.undecodable !== 'drop-session') return records;
    return records.then((all) => dropUndecodable(all, this.#writer));
  }

  /** The session that a record describes. */
  protected restore(record: SessionRecord): Session {
    return TrackedSession.restore(this.#writer, record);
  }
}

function withOnly(names: readonly string[], record: SessionRecord): SessionRecord {
  return { ...record, attributes: [...record.attributes].filter(([name]) => names.includes(name)) };
}

function boundsOf(options: SessionRepositoryOptions): SessionBounds {
  const { maxAttributes, maxAttributeNameSize, maxAttributeSize, maxSessionSize } = options;
  return {
    maxAttributes: maxAttributes ?? UNBOUNDED.maxAttributes,
    maxAttributeNameSize: maxAttributeNameSize ?? UNBOUNDED.maxAttributeNameSize,
    maxAttributeSize: maxAttributeSize ?? UNBOUNDED.maxAttributeSize,
    maxSessionSize: maxSessionSize ?? UNBOUNDED.maxSessionSize,
  };
}

/** Calls a store. @throws SessionStoreError, whatever the store throws */
export function wrapStoreErrors<T>(call: () => Promise<T>): Promise<T> {
  try {
    return call().catch(raise);
  } catch (error) {
    return Promise.reject(storeError(error));
  }
}

function raise(error: unknown): never {
  throw storeError(error);
}

/** An error of a store as a SessionStoreError. */
export function storeError(error: unknown): SessionStoreError {
  if (error instanceof SessionStoreError) return error;
  return new SessionStoreError(`The store failed: ${kindOf(error)}`, { cause: error });
}

/** The kind of an error, without its message, which may quote a value. */
function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const { name, code } = error as NodeJS.ErrnoException;
  return code === undefined ? name : `${name} ${code}`;
}
