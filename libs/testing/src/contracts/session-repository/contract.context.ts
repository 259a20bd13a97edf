import assert from 'node:assert/strict';
import {
  IndexedSessionRepository,
  type Session,
  type SessionEvent,
  SessionGoneError,
  type SessionRepository,
} from '@nest-session/core';
import {
  generateSessionKey,
  SessionIds,
  type StorePrimitives,
  storePrimitivesOf,
  TrackedSession,
} from '@nest-session/core/internal';
import type { SessionChange, SessionRecord, WriteReply } from '@nest-session/core/store';
import { CONTRACT_INDEXES } from './contract-indexes.js';
import type { ContractStore, SessionRepositoryContractOptions } from './contract.store.js';
import { PreparedIds } from './prepared-ids.js';

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const DAY = 24 * 60 * MINUTE;

/** The idle timeout of sessions whose check sets none, in milliseconds. */
export const INTERVAL = 30 * MINUTE;

/** What a session may hold. */
export const BOUNDS = {
  maxAttributes: 1100,
  maxAttributeNameSize: 1000,
  maxAttributeSize: 2_000_000,
  maxSessionSize: 4_000_000,
} as const;

/** How long the old id of a rotated session leads to it, in milliseconds. */
export const FORWARDING_TIME = 60 * SECOND;

/**
 * The place for a session, in a store that keeps sessions in several places. Without it, random ids decide, and a check
 * of two sessions would use one place or two by chance.
 */
export interface ContractPlace {
  /** In another place than each of these. */
  readonly apartFrom?: readonly string[];
  /** In the place of this one, so that the one could become the other. */
  readonly beside?: string;
}

// If there is another place, one of so many random ids is practically certain to be there.
const MOST_DRAWS = 100;

/** An empty store for one check, with the steps and assertions that most checks use. */
export class ContractContext {
  private readonly primitives: StorePrimitives;

  private constructor(
    private readonly store: ContractStore,
    private readonly ids: PreparedIds,
    private readonly slack: number,
  ) {
    this.primitives = storePrimitivesOf(store.repository);
  }

  static async open({ open, offers, slack = 30 * SECOND }: SessionRepositoryContractOptions): Promise<ContractContext> {
    const ids = new PreparedIds();
    const options = { ids: new SessionIds(ids), indexes: CONTRACT_INDEXES };
    const store = await open({ timeout: INTERVAL / SECOND, ...options, ...BOUNDS });
    if (offers.includes('nodes')) assert.ok(store.other, '`nodes` are offered by `other`');
    // The clock of a test often begins at a full minute or day, which would hide that a store truncates times.
    await store.advance(12_345);
    return new ContractContext(store, ids, slack);
  }

  get repository(): SessionRepository {
    return this.store.repository;
  }

  /** The repository of the other node, if the store has one. */
  get other(): SessionRepository {
    return this.store.other ?? this.store.repository;
  }

  get indexed(): IndexedSessionRepository {
    const { repository } = this;
    assert.ok(repository instanceof IndexedSessionRepository, '`indexes` are offered by an IndexedSessionRepository');
    return repository;
  }

  async close(): Promise<void> {
    await this.store.close?.();
  }

  /** A new session at a place, or at any place in a store that has only one. */
  create(place: ContractPlace, presentedIds: readonly string[] = []): TrackedSession {
    let session = this.repository.createSession(presentedIds);
    for (let draws = 1; draws < MOST_DRAWS && !this.#isAt(session.id, place); draws++) {
      session = this.repository.createSession(presentedIds);
    }
    return TrackedSession.of(session);
  }

  /** A free id at a place. */
  idAt(place: ContractPlace): string {
    let draws = 0;
    return generateSessionKey((id) => ++draws >= MOST_DRAWS || this.#isAt(id, place)).id;
  }

  #isAt(id: string, { apartFrom = [], beside }: ContractPlace): boolean {
    if (beside !== undefined && !this.mayReplace(id, beside)) return false;
    return !apartFrom.some((each) => this.mayReplace(id, each));
  }

  /** Creates and saves a session with these attributes, after `set` has changed it. */
  async stored(
    attributes: Record<string, unknown> = { a: 1 },
    set?: (session: TrackedSession) => void,
    place: ContractPlace = {},
  ): Promise<TrackedSession> {
    const session = this.create(place);
    for (const [name, value] of Object.entries(attributes)) session.setAttribute(name, value);
    set?.(session);
    await this.saves(session);
    return session;
  }

  /** Loads a session, and fails if there is none. */
  async load(id: string, repository: SessionRepository = this.repository): Promise<TrackedSession> {
    const session = await repository.findById(id);
    assert.ok(session, 'The session is not found');
    return TrackedSession.of(session);
  }

  async saves(session: Session): Promise<void> {
    assert.equal(await session.save(), 'saved');
  }

  /** Asserts that a save starts no session and signs in no user, because the session of the client has ended. */
  async refuses(session: Session): Promise<void> {
    await assert.rejects(session.save(), SessionGoneError);
    assert.equal(session.isGone, true);
  }

  /** Rotates a session, and returns its previous id. */
  async rotates(session: Session): Promise<string> {
    const { id } = session;
    session.changeSessionId();
    await this.saves(session);
    return id;
  }

  /** Asserts that no node finds a session under this id. */
  async isOver(id: string): Promise<void> {
    assert.equal(await this.repository.findById(id), null);
    assert.equal(await this.other.findById(id), null);
  }

  /** All attributes of a session by name. */
  async attributesOf(id: string): Promise<Record<string, unknown>> {
    const session = await this.load(id);
    return Object.fromEntries(session.attributeNames.toSorted().map((name) => [name, session.getAttribute(name)]));
  }

  /** Returns the record of a session in the store, and fails if there is none. */
  async recordOf(id: string, only?: readonly string[]): Promise<SessionRecord> {
    const [record, ...others] = await this.primitives.load([id], only);
    assert.ok(record, 'The session is not found');
    assert.deepEqual(others, []);
    const attributes = [...record.attributes].map(
      ([name, text]) => [name, typeof text === 'object' ? text.read() : text] as const,
    );
    return { ...record, attributes };
  }

  /** Asserts that the store has a session as it was, but for the time that has passed. */
  async isAsBefore({ timeToLive: before, ...times }: SessionRecord): Promise<void> {
    const { timeToLive, ...now } = await this.recordOf(times.id);
    assert.deepEqual(now, times);
    if (before === undefined || timeToLive === undefined) assert.equal(timeToLive, before);
    else this.isAbout(before - timeToLive, 0);
  }

  /** Runs one write of the store itself. */
  write(change: SessionChange): Promise<WriteReply> {
    return this.primitives.write(change);
  }

  /** A free id to which the session with this id may be rotated. */
  idFor(id: string): string {
    return generateSessionKey((drawn) => this.mayReplace(drawn, id)).id;
  }

  mayReplace(id: string, replaced: string): boolean {
    return this.primitives.mayReplace(id, replaced);
  }

  /** Makes the next session draw the id of this stored session first. */
  drawAgain(session: TrackedSession): void {
    assert.ok(session.tokenToSend);
    // An id that is drawn twice in a row is refused, so another one is drawn in between.
    this.repository.createSession();
    this.ids.prepare(session.tokenToSend);
  }

  async advance(milliseconds: number): Promise<void> {
    await this.store.advance(milliseconds);
  }

  /** Moves the clock to just before the end of a session that was renewed now and lives for `end` milliseconds. */
  async advanceToJustBefore(end: number): Promise<void> {
    await this.advance(end - 1 - this.slack);
  }

  /** Moves the clock from just before the end to just after it. */
  async advancePast(): Promise<void> {
    await this.advance(this.slack + 2);
  }

  /** Moves the clock until every session with the default idle timeout has expired. */
  async expireAll(): Promise<void> {
    await this.advance(INTERVAL + 1);
  }

  /** Asserts that a duration by the store's clock is the one by which the check has moved it, within the slack. */
  isAbout(duration: number, expected: number): void {
    const isAbout = duration >= expected && duration <= expected + this.slack;
    assert.ok(isAbout, `${duration} ms are not ${expected} ms, nor up to ${this.slack} ms more`);
  }

  async reportExpired(): Promise<void> {
    await this.store.reportExpired?.();
  }

  /** The recorded events of the sessions with these ids; without ids, of all sessions. */
  async events(...ids: string[]): Promise<SessionEvent[]> {
    assert.ok(this.store.events && this.store.reportExpired, '`events` are offered by events() and reportExpired()');
    const events = await this.store.events();
    return events.filter(({ sessionId }) => ids.length === 0 || ids.includes(sessionId));
  }

  async eventTypes(...ids: string[]): Promise<string[]> {
    return (await this.events(...ids)).map(({ type }) => type);
  }

  /** Runs a step while the store fails. */
  outage(step: () => Promise<void>): Promise<void> {
    assert.ok(this.store.outage, '`outages` are offered by outage()');
    return this.store.outage(step);
  }
}
