import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { Inject, Injectable } from '@nestjs/common';
import {
  type DueList,
  type DueSweeper,
  ifStray,
  InjectConnection,
  Pace,
  redisTime,
  type SweepCounter,
  type SweepOptions,
} from '@nest-session/redis-events/internal';
import { pages, type SessionKeys } from '@nest-session/redis/internal';
import { membersOfSet, SharedKeys, type SpringKeys, storedIds } from '../keys/spring-keys.js';
import { readStoredValue } from '../values/stored-value.js';
import { type ResolvedSpringSessionOptions, SPRING_SESSION_OPTIONS } from '../spring-session.options.js';
import { type Heard, type LookOutcome, SharedScripts } from '../scripts/shared/shared.scripts.js';

// How far it looks ahead, in minutes: the cleanup job runs in each, and Spring deletes a bucket when its minute begins.
const AHEAD = 2;
const MINUTE = 60_000;
const PER_PAGE = 500;
const OF_BUCKET = 'expires:';
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
    const looked = await this.#outcomes(heard);
    return looked.flatMap(([each, outcome]) => (outcome === 'unknown' ? [each] : []));
  }

  // For what happened while nothing was heard. The scan of all that Spring has is slow, and made by one instance.
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

  /** False when another instance looks at all of them, or has just done so. */
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
    for await (const ids of idsEndingSoon(this.client, this.keys.spring, now)) {
      const heard = ids.map((id) => ({ id, what: '' as const }));
      for (const [{ id }, outcome] of await this.#outcomes(heard, signal)) count(this.keys.own, tally, id, outcome);
    }
  }

  async #outcomes<Item extends Heard>(heard: readonly Item[], signal?: AbortSignal) {
    const looked: [Item, LookOutcome][] = [];
    for (let i = 0; i < heard.length && !signal?.aborted; i += this.#batchSize) {
      const batch = heard.slice(i, i + this.#batchSize);
      const { named } = await this.#scripts.lookAt(batch, 0);
      for (const [n, each] of batch.entries()) looked.push([each, named[n]!]);
    }
    return looked;
  }
}

function count(partition: SessionKeys, tally: SweepCounter, id: string, outcome: LookOutcome): void {
  const word = outcome === 'claimed' || outcome === 'already' ? outcome : 'alive';
  tally.count(partition, partition.memberOf(id), { outcome: word }, Infinity, 0);
}

/** Pages of the ids that Spring has in the buckets of the next minutes, and in its sorted set of expirations. */
async function* idsEndingSoon(client: Redis, keys: SpringKeys, now: number): AsyncIterable<string[]> {
  const first = Math.floor(now / MINUTE) * MINUTE;
  for (let i = 0; i <= AHEAD; i++) {
    for await (const page of membersOfSet(client, keys.bucket(first + i * MINUTE))) {
      yield textsOf(page).flatMap((text) => (text.startsWith(OF_BUCKET) ? text.slice(OF_BUCKET.length) : []));
    }
  }
  const until = now + AHEAD * MINUTE;
  for (let from = 0, size = PER_PAGE; size === PER_PAGE; from += size) {
    const members = await client
      .zrangebyscoreBuffer(keys.expirations, 0, until, 'LIMIT', from, PER_PAGE)
      .catch(ifStray([]));
    size = members.length;
    yield textsOf(members);
  }
}

function textsOf(members: readonly Buffer[]): string[] {
  return members.map((member) => readStoredValue(member)).filter((value) => typeof value === 'string');
}
