import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import type { Redis } from 'ioredis';
import {
  type DueList,
  type DueSweeper,
  InjectConnection,
  Pace,
  redisTime,
  type SweepCounter,
  type SweepOptions,
} from '@nest-session/redis-events/internal';
import { pages, type SessionKeys } from '@nest-session/redis/internal';
import { type ResolvedSpringSessionOptions, SPRING_SESSION_OPTIONS } from '../configuration/spring-session.options.js';
import { type Heard, SharedScripts } from '../scripts/shared/shared.scripts.js';
import { idsEndingSoon } from './ending-soon.js';
import { SharedKeys } from '../keys/shared-keys.js';
import { storedIds } from '../keys/stored-ids.js';

// How far it looks ahead, in minutes: the cleanup job runs in each, and Spring deletes a bucket when its minute begins.
const AHEAD = 2;
const PER_PAGE = 500;
const SCANNED_PER_SECOND = 5000;
// Milliseconds. When an instance dies meanwhile, another one looks at all of them.
const LONGEST_PAGE = 10_000;
const UNTIL_NEXT_TRY = 500;

/**
 * Finds what happened to shared sessions and nobody has told us: it looks at those that are due by our own list, and at
 * those that Spring expects to end soon, which may have been there before us.
 */
@Injectable()
export class SharedSessionSweeper implements DueSweeper<SessionKeys>, DueList<SessionKeys> {
  readonly what = 'sessions';
  readonly looksElsewhere = true;
  readonly #scripts: SharedScripts;
  readonly #batchSize: number;
  /** Its scans are known by it. */
  readonly #name = randomUUID();

  constructor(
    @InjectConnection('background') private readonly client: Redis,
    @Inject(SharedKeys) private readonly keys: SharedKeys,
    @Inject(SPRING_SESSION_OPTIONS) { batchSize }: Pick<ResolvedSpringSessionOptions, 'batchSize'>,
  ) {
    this.#scripts = new SharedScripts(client, keys);
    this.#batchSize = batchSize;
  }

  async sweep(partitions: readonly SessionKeys[], tally: SweepCounter, options: SweepOptions): Promise<void> {
    const [partition] = partitions;
    if (!partition) return;
    try {
      await this.#lookAtSoon(tally, options);
      await this.claimIn(partition, tally, options);
    } catch (error) {
      tally.failures.push(error);
    }
  }

  async claimIn(partition: SessionKeys, tally: SweepCounter, { signal }: SweepOptions): Promise<number | undefined> {
    while (!signal?.aborted) {
      const { due, next } = await this.#scripts.lookAt([], this.#batchSize);
      for (const [id, outcome] of due) count(partition, tally, id, outcome);
      if (due.size < this.#batchSize) return next;
    }
    return undefined;
  }

  /** Looks at sessions of which something was heard. Resolves to what could not be looked at yet. */
  async lookAt<Item extends Heard>(heard: readonly Item[]): Promise<Item[]> {
    const unknown: Item[] = [];
    for (let i = 0; i < heard.length; i += this.#batchSize) {
      const batch = heard.slice(i, i + this.#batchSize);
      const { named } = await this.#scripts.lookAt(batch, 0);
      unknown.push(...batch.filter((_, n) => named[n] === 'unknown'));
    }
    return unknown;
  }

  /**
   * Looks at all sessions, because something may have happened while nothing was heard: at those that are known, and
   * then at all that Spring has, no faster than a bounded rate. For the latter, one instance at a time is enough.
   */
  async lookAtAll(signal: AbortSignal): Promise<void> {
    const { own, scanning } = this.keys;
    for await (const page of pages((cursor) => this.client.zscan(own.ends, cursor, 'COUNT', PER_PAGE))) {
      signal.throwIfAborted();
      await this.#lookAtIds(page.filter((_, i) => i % 2 === 0));
    }
    if (!(await this.#takeTurn(signal))) return;
    try {
      await this.#lookAtStored(signal);
    } finally {
      // The next scan, here or on an instance that starts when this one stops, must not take it for running.
      await this.client.del(scanning);
    }
  }

  /**
   * False when another instance looks at all of them, or has just done so. One that has died meanwhile does not count.
   */
  async #takeTurn(signal: AbortSignal): Promise<boolean> {
    const { scanning } = this.keys;
    const end = performance.now() + LONGEST_PAGE;
    let left = 0;
    while (!(await this.client.set(scanning, this.#name, 'PX', LONGEST_PAGE, 'NX'))) {
      // It has renewed the key.
      if (performance.now() > end) return false;
      left = await this.client.pttl(scanning);
      // A scan of this instance that a fault has ended, or one from before the clock of Redis was set back.
      const isOwn = (await this.client.get(scanning)) === this.#name;
      if (isOwn || left > LONGEST_PAGE) return true;
      await pause(UNTIL_NEXT_TRY, undefined, { ref: false, signal });
    }
    if (left <= 2 * UNTIL_NEXT_TRY) return true;
    // It has removed the key: it was not its end that came.
    await this.client.del(scanning);
    return false;
  }

  async #lookAtStored(signal: AbortSignal): Promise<void> {
    const { spring, scanning } = this.keys;
    const pace = new Pace(SCANNED_PER_SECOND, signal);
    for await (const ids of storedIds(this.client, spring)) {
      await this.#lookAtIds(ids);
      await pace.pass(PER_PAGE);
      await this.client.pexpire(scanning, LONGEST_PAGE);
    }
  }

  async #lookAtIds(ids: readonly string[]): Promise<void> {
    await this.lookAt(ids.map((id) => ({ id, what: '' })));
  }

  async #lookAtSoon(tally: SweepCounter, { signal }: SweepOptions): Promise<void> {
    const now = await redisTime(this.client);
    for await (const ids of idsEndingSoon(this.client, this.keys.spring, now, AHEAD)) {
      for (let i = 0; i < ids.length && !signal?.aborted; i += this.#batchSize) {
        const batch = ids.slice(i, i + this.#batchSize).map((id) => ({ id, what: '' as const }));
        const { named } = await this.#scripts.lookAt(batch, 0);
        for (const [n, { id }] of batch.entries()) count(this.keys.own, tally, id, named[n]!);
      }
    }
  }
}

function count(partition: SessionKeys, tally: SweepCounter, id: string, outcome: string): void {
  const word = outcome === 'claimed' || outcome === 'already' ? outcome : 'alive';
  tally.count(partition, partition.memberOf(id), { outcome: word }, Infinity, 0);
}
