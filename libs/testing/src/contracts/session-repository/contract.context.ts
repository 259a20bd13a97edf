import assert from 'node:assert/strict';
import { IndexedSessionRepository, type Session, type SessionEvent, type SessionRepository } from '@nest-session/core';
import {
  generateSessionKey,
  type SessionChange,
  SessionIds,
  type SessionRecord,
  type StorePrimitives,
  storePrimitivesOf,
  TrackedSession,
  type WriteReply,
} from '@nest-session/core/store';
import type { ContractStore, SessionRepositoryContractOptions } from './contract.store.js';
import { PreparedIds } from './prepared-ids.js';

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const DAY = 24 * 60 * MINUTE;

/** Of sessions that nobody gave another one. */
export const INTERVAL = 30 * MINUTE;

/** How long after a change of its id a session is still reached by those that have loaded it under the old one. */
export const FOLLOWED = 60 * SECOND;

/** What a check finds: an empty store, and words for what most of them do with it. */
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
    const store = await open({ timeout: INTERVAL / SECOND, ids: new SessionIds(ids), undecodable: 'throw' });
    if (offers.includes('nodes')) assert.ok(store.other, '`nodes` are offered by `other`');
    // A clock of a test begins at a full minute, or day, and what a store cuts off of its times would not be seen.
    await store.advance(12_345);
    return new ContractContext(store, ids, slack);
  }

  get repository(): SessionRepository {
    return this.store.repository;
  }

  /** That of the other node, where there is one. */
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

  /** A session that the store has, with these attributes and what `set` gives it. */
  async stored(
    attributes: Record<string, unknown> = { a: 1 },
    set?: (session: TrackedSession) => void,
  ): Promise<TrackedSession> {
    const session = TrackedSession.of(this.repository.createSession());
    for (const [name, value] of Object.entries(attributes)) session.setAttribute(name, value);
    set?.(session);
    await this.saves(session);
    return session;
  }

  /** A session of an id, which is there. */
  async load(id: string, repository: SessionRepository = this.repository): Promise<TrackedSession> {
    const session = await repository.findById(id);
    assert.ok(session, 'The session is not found');
    return TrackedSession.of(session);
  }

  async saves(session: Session): Promise<void> {
    assert.equal(await session.save(), 'saved');
  }

  /** Has a session change its id, and gives the one that it had. */
  async rotates(session: Session): Promise<string> {
    const { id } = session;
    session.changeSessionId();
    await this.saves(session);
    return id;
  }

  /** That no node finds a session of this id. */
  async isOver(id: string): Promise<void> {
    assert.equal(await this.repository.findById(id), null);
    assert.equal(await this.other.findById(id), null);
  }

  /** What all attributes of a session are. */
  async attributesOf(id: string): Promise<Record<string, unknown>> {
    const session = await this.load(id);
    return Object.fromEntries(session.attributeNames.toSorted().map((name) => [name, session.getAttribute(name)]));
  }

  /** What the store hands out of a session, which is there. */
  async recordOf(id: string): Promise<SessionRecord> {
    const [record, ...others] = await this.primitives.load([id]);
    assert.ok(record, 'The session is not found');
    assert.deepEqual(others, []);
    return record;
  }

  /** One step of the store itself. */
  write(change: SessionChange): Promise<WriteReply> {
    return this.primitives.write(change);
  }

  /** An id that nobody has, and that the session with this one may be given. */
  idFor(id: string): string {
    return generateSessionKey((drawn) => this.mayReplace(drawn, id)).id;
  }

  mayReplace(id: string, replaced: string): boolean {
    return this.primitives.mayReplace(id, replaced);
  }

  /** Has the next session that draws an id draw first that of another one, which was stored here. */
  drawAgain(session: TrackedSession): void {
    assert.ok(session.tokenToSend);
    // One that is drawn twice running is refused.
    this.repository.createSession();
    this.ids.prepare(session.tokenToSend);
  }

  async advance(milliseconds: number): Promise<void> {
    await this.store.advance(milliseconds);
  }

  /** Until a session is about to end that had so long to live when it was last renewed, just now. */
  async advanceToJustBefore(end: number): Promise<void> {
    await this.advance(end - 1 - this.slack);
  }

  /** From there until it has ended. */
  async advancePast(): Promise<void> {
    await this.advance(this.slack + 2);
  }

  /** Until every session is over that has the usual interval. */
  async expireAll(): Promise<void> {
    await this.advance(INTERVAL + 1);
  }

  /** That a duration by the store's clock is the one by which this check has moved it. */
  isAbout(duration: number, expected: number): void {
    const isAbout = duration >= expected && duration <= expected + this.slack;
    assert.ok(isAbout, `${duration} ms are not ${expected} ms, nor up to ${this.slack} ms more`);
  }

  async reportExpired(): Promise<void> {
    await this.store.reportExpired?.();
  }

  /** All that is recorded of the sessions which have, or had, one of these ids; of all sessions without one. */
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
