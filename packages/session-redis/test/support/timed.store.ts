import { type IndexedSessionRepository, MapSessionRepository, PRINCIPAL_NAME_INDEX_NAME } from '@nest-session/core';
import { ManualClock } from '@nest-session/testing';
import { RequestConnection } from '../../../redis-events/src/connection/request.connection.js';
import { SingleNode } from '../../../redis-events/src/connection/redis-nodes.js';
import { RedisSessionRepository } from '../../src/repository/redis-session.repository.js';
import { GRACE, MINUTE, type SteppableStore, Store } from './store.fixture.js';
import { hashOfValue } from './hash-of-value.js';

/** A store whose clock the test steps. */
export interface TimedStore {
  readonly repository: IndexedSessionRepository;
  /** Epoch milliseconds. */
  now(): Promise<number>;
  advance(ms: number): Promise<void>;
  /** Whether a session without further access is alive at a future time. */
  isAliveAt(id: string, time: number): Promise<boolean>;
  /** Expects the keys of a session to agree with its end. */
  expectInOrder(id: string, principal: string): Promise<void>;
  close(): Promise<void>;
}

export class TimedMapStore implements TimedStore {
  readonly #clock = new ManualClock();
  readonly repository = new MapSessionRepository({ clock: this.#clock });

  async now(): Promise<number> {
    return this.#clock.now();
  }

  async advance(ms: number): Promise<void> {
    this.#clock.advance(ms);
  }

  async isAliveAt(id: string, time: number): Promise<boolean> {
    const ahead = time - this.#clock.now();
    this.#clock.advance(ahead);
    const session = await this.repository.findById(id);
    this.#clock.advance(-ahead);
    return session !== null;
  }

  async expectInOrder(id: string, principal: string): Promise<void> {
    const isAlive = (await this.repository.findById(id)) !== null;
    expect(await this.repository.findByPrincipalName(principal)).toHaveLength(isAlive ? 1 : 0);
  }

  async close(): Promise<void> {}
}

export class TimedRedisStore implements TimedStore {
  readonly repository: RedisSessionRepository;

  private constructor(private readonly store: SteppableStore) {
    const { scripts, partitions } = store;
    const connection = new RequestConnection(new SingleNode(store.client), { commandTimeout: 10 * MINUTE });
    this.repository = new RedisSessionRepository(connection, () => scripts, partitions);
  }

  static async open(partitions: number): Promise<TimedRedisStore> {
    return new TimedRedisStore(await Store.openSteppable({ partitions }));
  }

  now(): Promise<number> {
    return this.store.now();
  }

  advance(ms: number): Promise<void> {
    return this.store.server.stepClock(ms);
  }

  async isAliveAt(id: string, time: number): Promise<boolean> {
    const end = await this.store.client.pexpiretime(this.store.keysOf(id).shadow(id));
    return end === WITHOUT_END || end > time;
  }

  async expectInOrder(id: string, principal: string): Promise<void> {
    const { client } = this.store;
    const keys = this.store.keysOf(id);
    const [{ bucket }, end, endOfData, members, [minute, ...others]] = await Promise.all([
      this.store.session(id),
      client.pexpiretime(keys.shadow(id)),
      client.pexpiretime(keys.session(id)),
      client.zrange(keys.index(PRINCIPAL_NAME_INDEX_NAME, hashOfValue(principal)), '0', '-1'),
      this.store.buckets(id),
    ]);
    // Ended, and not swept yet.
    if (end === MISSING) return;
    expect(members).toEqual([id]);
    expect(others).toEqual([]);
    expect(bucket).toBe(minute);
    expect(endOfData).toBe(end === WITHOUT_END ? WITHOUT_END : end + GRACE);
    if (end === WITHOUT_END) expect(minute).toBeUndefined();
    // A member may be early, never late.
    else expect(Number(minute)).toBeLessThanOrEqual(Math.floor((end + MINUTE) / MINUTE) * MINUTE);
  }

  close(): Promise<void> {
    return this.store.close();
  }
}

// The reply of PEXPIRETIME.
const WITHOUT_END = -1;
const MISSING = -2;
