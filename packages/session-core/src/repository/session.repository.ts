import { SessionStateError, SessionStoreError } from '../errors/session.errors.js';
import type { SecurityEvents } from '../security-events/security-events.js';
import type { AttributeSerializer } from '../session/attribute.serializer.js';
import { ConcurrentUpdates } from '../session/concurrent-updates.js';
import { JsonAttributeSerializer } from '../session/json-attribute.serializer.js';
import { type SessionBounds, sizesOf } from '../session/session-bounds.js';
import { PRINCIPAL_ATTRIBUTE } from '../session/attribute-names.js';
import type { SaveOutcome, Session } from '../session/session.js';
import { isWellFormedIdOrToken, SessionIds } from '../session/session-token.js';
import { SessionIndexes } from '../session/session-indexes.js';
import type { SessionChange, TouchOutcome, WriteReply, SessionDeletedReason } from '../session/session-change.js';
import type { SessionRecord } from '../session/session-record.js';
import type { MaxSessions, SessionWriter } from '../session/session-state.js';
import { TrackedSession } from '../session/tracked-session.js';
import { WarnOnce } from '../logging/warn-once.js';
import { StoreCalls } from './store-calls.js';

/** The options of the application that a repository needs. `SESSION_OPTIONS` contains them. */
export interface SessionRepositoryOptions {
  /** Tells this store from others in tracing channels. @default '' */
  readonly namespace?: string | undefined;
  /** The idle timeout of sessions with a signed-in user, in seconds. -1 means none. @default 1800 */
  readonly timeout?: number | undefined;
  /** The idle timeout of sessions without a signed-in user, in seconds. -1 means none. @default timeout */
  readonly anonymousTimeout?: number | undefined;
  /** The absolute timeout of new sessions in seconds. -1 means none. @default -1 */
  readonly absoluteTimeout?: number | undefined;
  /** The longest absolute timeout that a session may be given later, in seconds. @default no limit */
  readonly longestAbsoluteTimeout?: number | undefined;
  /** Draws tokens and derives ids from them. @default tokens of 256 random bits, hashed */
  readonly ids?: SessionIds | undefined;
  /** Encodes and decodes the values of attributes. @default JsonAttributeSerializer */
  readonly serializer?: AttributeSerializer | undefined;
  /** How many attributes a session may have. @default no limit */
  readonly maxAttributes?: number | undefined;
  /** The longest name of an attribute, in bytes. @default no limit */
  readonly maxAttributeNameSize?: number | undefined;
  /** The longest text of one attribute, in bytes. @default no limit */
  readonly maxAttributeSize?: number | undefined;
  /** How long `updateAttribute()` waits for other updates of the attribute, in milliseconds. @default 5000 */
  readonly updateTimeout?: number | undefined;
  /** The total size of the names and texts of all attributes of a session, in bytes. @default no limit */
  readonly maxSessionSize?: number | undefined;
  /** How much a session without a signed-in user may hold. @default as much as any other */
  readonly visitorBounds?: SessionBounds | undefined;
  /** The attributes that a sign-in removes. @default none */
  readonly visitorAttributes?: readonly string[] | undefined;
  /** How many live sessions a principal may have. @default any number */
  readonly maxSessions?: MaxSessions | undefined;
  /** The indexes that list the sessions. @default only the index of principals */
  readonly indexes?: SessionIndexes | undefined;
  /** Receives reports of what an attacker may have done. @default no reports */
  readonly securityEvents?: SecurityEvents | undefined;
}

export interface StorePrimitives {
  load(ids: readonly string[], only?: readonly string[]): Promise<readonly SessionRecord[]>;
  /** Makes one atomic change. Rejects with the error of the store itself, without a `SessionStoreError` around it. */
  write(change: SessionChange): Promise<WriteReply>;
  mayReplace(id: string, replaced: string): boolean;
  restore(record: SessionRecord): Session;
}

/** See `SessionRepository.leaveMark()`. */
export interface StoreMarks {
  leave(name: string, value: number, duration: number): Promise<void>;
  read(names: readonly string[]): Promise<readonly (number | undefined)[]>;
}

/** Returns the protected methods that a store implements. Applications do not call them. */
export let storePrimitivesOf: (repository: SessionRepository) => StorePrimitives;

/** Like `findByIds()`, but loads only these attributes. Do not change the sessions. */
export let findPartly: (
  repository: SessionRepository,
  ids: readonly string[],
  names: readonly string[],
) => Promise<(Session | null)[]>;

/** Nobody has signed in lately any more; the user stays. Resolves to `saved` unless it has ended or was rotated. */
export let forgetSignIn: (repository: SessionRepository, id: string) => Promise<WriteReply['outcome']>;

export let storeCallsOf: (repository: SessionRepository) => StoreCalls;

/** Whether a session lives that was loaded under this id, as one of this principal. Renews nothing. */
export let lookAgain: (
  repository: SessionRepository,
  id: string,
  principalName: string | undefined,
) => Promise<'alive' | 'forwarded' | 'gone'>;

/** Where the rule of a repository's sessions is set, and what accepts providers. */
export let writerOf: (repository: SessionRepository) => Pick<SessionWriter, 'rule' | 'providers'>;

/** The marks of a store; undefined for one that keeps none. */
export let marksOf: (repository: SessionRepository) => StoreMarks | undefined;

/** Like `deleteById()`, for another session of a client that signs out. */
export let signOutById: (repository: SessionRepository, id: string) => Promise<boolean>;

/**
 * Creates, finds, saves and deletes sessions. A session that does not exist is a result, not an error. Methods throw
 * `SessionStoreError` only when the store failed.
 *
 * To write a store, extend this class and implement `load()` and `write()`. The library calls them at any time and
 * concurrently. Throw a `SessionStoreError` whose reason quotes no value, because the reason is logged, and a
 * `SessionStateError` for what the store never does, which reaches the caller as it is. Any other error becomes the
 * `cause` of a `SessionStoreError`.
 */
export abstract class SessionRepository {
  static {
    storePrimitivesOf = (repository) => ({
      load: (ids, only) => repository.load(ids, only),
      write: (change) => repository.write(change),
      mayReplace: (id, replaced) => repository.mayReplace(id, replaced),
      restore: (record) => repository.restore(record),
    });
    findPartly = (repository, ids, names) => repository.#find(ids, names);
    forgetSignIn = async (repository, id) =>
      (await repository.#writer.write({ ...NO_CHANGE, id, signsOut: true })).outcome;
    signOutById = (repository, id) => repository.#delete(id, 'signed-out');
    lookAgain = (repository, id, principalName) => repository.#lookAgain(id, principalName);
    writerOf = (repository) => repository.#writer;
    marksOf = (repository) => repository.#marks;
    storeCallsOf = (repository) => repository.#calls;
  }

  readonly #ids: SessionIds;
  readonly #calls: StoreCalls;
  readonly #writer: SessionWriter;

  protected constructor(options: SessionRepositoryOptions = {}) {
    const { timeout = 1800, anonymousTimeout = timeout, absoluteTimeout = -1, ids = new SessionIds() } = options;
    this.#ids = ids;
    const calls = new StoreCalls(options.namespace ?? '', ids);
    this.#calls = calls;
    const write = (change: SessionChange) => calls.write(change, () => this.write(change));
    this.#writer = {
      warnings: new WarnOnce(),
      indexes: options.indexes ?? new SessionIndexes(),
      bounds: boundsOf(options),
      visitorBounds: options.visitorBounds,
      timeouts: { maxInactiveInterval: timeout, absoluteTimeout },
      anonymousTimeout,
      longestAbsoluteTimeout: options.longestAbsoluteTimeout ?? Infinity,
      visitorAttributes: options.visitorAttributes ?? [],
      maxSessions: options.maxSessions,
      updates: new ConcurrentUpdates(write, options.updateTimeout),
      serializer: options.serializer ?? new JsonAttributeSerializer(),
      write,
      drawKey: (replaced) => this.#ids.draw(replaced === undefined ? undefined : (id) => this.mayReplace(id, replaced)),
      shown: (id) => ids.shown(id),
      securityEvents: options.securityEvents,
    };
  }

  /**
   * Returns a new session, which is in the store only once it is saved.
   * @param presentedIds the ids that the client presented and that opened no session: they tell a late request
   */
  createSession(presentedIds: readonly string[] = []): Session {
    const { timeouts, anonymousTimeout: maxInactiveInterval } = this.#writer;
    return TrackedSession.create(this.#writer, { ...timeouts, maxInactiveInterval }, presentedIds);
  }

  /** Returns the live session with an id, or null. It does not count as an access. */
  async findById(id: string): Promise<Session | null> {
    const [session] = await this.findByIds([id]);
    return session ?? null;
  }

  /** Returns the live sessions with these ids in the same order, or null for one that is missing. */
  findByIds(ids: readonly string[]): Promise<(Session | null)[]> {
    return this.#find(ids);
  }

  async #find(ids: readonly string[], only?: readonly string[]): Promise<(Session | null)[]> {
    const wellFormed = ids.filter(isWellFormedIdOrToken);
    if (wellFormed.length === 0) return ids.map(() => null);
    const loaded = await this.#load(ids.length === 1 ? ids : [...new Set(wellFormed)], only);
    const records = only ? loaded.map((record) => withOnly(only, record)) : loaded;
    // Most requests present one id.
    if (ids.length === 1) return [records[0]?.id === ids[0] ? this.restore(records[0]!) : null];
    const found = new Map(records.map((record) => [record.id, record]));
    return ids.map((id) => (found.has(id) ? this.restore(found.get(id)!) : null));
  }

  #load(ids: readonly string[], only?: readonly string[]): Promise<readonly SessionRecord[]> {
    const id = ids.length === 1 ? ids[0] : undefined;
    // A store may have read a part of them.
    const tell = only ? ({ length }: readonly unknown[]) => ({ found: length }) : sizesOf;
    return this.#calls.read('load', () => this.load(ids, only), tell, id);
  }

  /** `session.save()`, which renews the idle timeout if there are changes. */
  async save(session: Session): Promise<SaveOutcome> {
    return TrackedSession.of(session).save();
  }

  /**
   * Renews the idle timeout of a session. Returns `forwarded` if the session was touched but has been rotated since it
   * was loaded, so that its former token is no longer valid. Returns `gone` if the session has ended, or has become
   * that of another principal.
   */
  async touch(session: Session): Promise<TouchOutcome> {
    const { storedId: id } = TrackedSession.of(session);
    if (id === undefined) return 'gone';
    const { outcome } = await this.#writer.write({ kind: 'touch', id });
    return outcome === 'touched' || outcome === 'forwarded' ? outcome : 'gone';
  }

  /**
   * Ends a session and records its deleted event. Returns false if no live session has this id, or if it has become
   * that of another principal since it had this id.
   */
  async deleteById(id: string): Promise<boolean> {
    return this.#delete(id, 'revoked');
  }

  async #delete(id: string, reason: SessionDeletedReason): Promise<boolean> {
    if (!isWellFormedIdOrToken(id)) return false;
    const { outcome } = await this.#writer.write({ kind: 'delete', id, reason });
    return outcome !== 'gone';
  }

  async #lookAgain(id: string, principalName: string | undefined): Promise<'alive' | 'forwarded' | 'gone'> {
    const [found] = await this.#find([id], [PRINCIPAL_ATTRIBUTE]);
    if (found) return TrackedSession.of(found).storedPrincipal === principalName ? 'alive' : 'gone';
    try {
      // No load finds a rotated session, but the store forwards a change: this one changes nothing.
      const { outcome } = await this.#writer.write({ ...NO_CHANGE, id });
      return outcome === 'forwarded' ? 'forwarded' : 'gone';
    } catch (error) {
      // A store that only reads forwards nothing.
      if (error instanceof SessionStateError) return 'gone';
      throw error;
    }
  }

  /** The clock that stamps the sessions, in epoch milliseconds. Compare the times of sessions only with this clock. */
  now(): Promise<number> {
    return this.#calls.run(() => this.readClock());
  }

  /** Returns the time by the store's clock. Override it in a store that has its own clock. */
  protected async readClock(): Promise<number> {
    return Date.now();
  }

  get #marks(): StoreMarks | undefined {
    if (!this.leaveMark || !this.readMarks) return undefined;
    return {
      leave: (name, value, duration) => this.#calls.run(() => this.leaveMark!(name, value, duration)),
      read: (names) => this.#calls.run(() => this.readMarks!(names)),
    };
  }

  /**
   * Keeps a number under a name for so many milliseconds: of two numbers and two times under one name, the greater.
   * Whatever is read after it has resolved sees it, on every instance. `name`: a hash of 43 characters of base64url.
   * Optional, with `readMarks()`: `ProviderLogoutModule` needs both.
   */
  protected leaveMark?(name: string, value: number, duration: number): Promise<void>;

  /** The numbers under these names, in the same order; undefined where there is none, or its time has passed. */
  protected readMarks?(names: readonly string[]): Promise<readonly (number | undefined)[]>;

  /**
   * Ends every session that was created or signed in to before the call. After two seconds, no instance finds any of
   * them; a handler that had found one may still run. The store records their deleted events in the background.
   * @throws SessionStoreError when the store failed, or does not implement this
   */
  endEverySession(): Promise<void> {
    return this.#calls.endAll(() => this.endEvery());
  }

  /** Implements `endEverySession()`. Resolves when sessions that began before the call can no longer be found. */
  protected endEvery(): Promise<void> {
    throw new SessionStoreError('The repository of the sessions does not implement endEvery()');
  }

  /**
   * Returns the live sessions with these ids, in any order. The ids are distinct. Old ids of rotated sessions find
   * nothing.
   * @param only the names of the attributes that the caller reads. If unset, it reads all of them. A store may skip the
   *   others.
   */
  protected abstract load(ids: readonly string[], only?: readonly string[]): Promise<readonly SessionRecord[]>;

  /**
   * Makes one change and records its events atomically, whatever other instances do at the same time. The rules are
   * those of `SessionChange`.
   */
  protected abstract write(change: SessionChange): Promise<WriteReply>;

  /** Whether a session may be rotated to this fresh id. Override it in a store that partitions its sessions by id. */
  protected mayReplace(_id: string, _replaced: string): boolean {
    return true;
  }

  /** Returns the session that a record describes. */
  protected restore(record: SessionRecord): Session {
    return new TrackedSession(this.#writer, record);
  }
}

const NO_CHANGE = { kind: 'update', keepsIdle: true, attributes: new Map(), indexes: new Map() } as const;

function withOnly(names: readonly string[], record: SessionRecord): SessionRecord {
  return { ...record, attributes: [...record.attributes].filter(([name]) => names.includes(name)) };
}

function boundsOf(options: SessionRepositoryOptions): SessionBounds {
  const { maxAttributes = Infinity, maxAttributeNameSize = Infinity } = options;
  const { maxAttributeSize = Infinity, maxSessionSize = Infinity } = options;
  return { maxAttributes, maxAttributeNameSize, maxAttributeSize, maxSessionSize };
}

/** A live session, and what its store has of it. Do not change the session. */
export interface InspectedSession {
  readonly record: SessionRecord;
  readonly session: Session;
}

type Look = StorePrimitives['load'];

const looks = new WeakMap<SessionRepository, Look>();

/** Sets how a store loads sessions for `inspectSessions()`, if not as for a request. */
export function lookBy(repository: SessionRepository, look: Look): void {
  looks.set(repository, look);
}

/** Loads live sessions for somebody who looks at them, in any order. It does not count as an access. */
export async function inspectSessions(
  repository: SessionRepository,
  ids: readonly string[],
): Promise<InspectedSession[]> {
  const wellFormed = [...new Set(ids)].filter(isWellFormedIdOrToken);
  if (wellFormed.length === 0) return [];
  const { load, restore } = storePrimitivesOf(repository);
  const look = looks.get(repository) ?? load;
  const records = await storeCallsOf(repository).read('load', () => look(wellFormed), sizesOf);
  return records.map((record) => ({ record, session: restore(record) }));
}
