import { randomInt } from 'node:crypto';
import type { Redis } from 'ioredis';
import {
  type BackgroundLimiter,
  type Claim,
  type DueSweeper,
  isReply,
  nodeWith,
  type SweepCounter,
  type SweepOptions,
} from '@nest-session/redis-events/internal';
import type { SessionKeys } from '../keys/session-keys.js';
import type { SessionScripts } from '../scripts/session/session.scripts.js';
import { pages, type ReadPage } from './scan-pages.js';
import { sessionsRecordedIn } from './recorded-sessions.js';

/** The bucket of one minute in one partition. */
interface Bucket {
  readonly partition: SessionKeys;
  readonly minute: string;
  /** The clock of its node when the pass began there: epoch milliseconds. */
  readonly now: number;
}

const MEMBERS_PER_PAGE = 100;
// Redis takes the place in the hash table of a set from the lowest bits of a cursor, and any number is one.
const HIGHEST_CURSOR = 2 ** 32;

/** A set for each minute, and a list of the minutes that have one. */
export class BucketExpirationStore implements Pick<DueSweeper<SessionKeys>, 'sweep'> {
  constructor(
    private readonly client: Redis,
    private readonly scripts: SessionScripts,
    private readonly batchSize: number,
    private readonly limiter: BackgroundLimiter,
  ) {}

  /** Rejects with the error of ioredis when a bucket list cannot be read. */
  async sweep(
    partitions: readonly SessionKeys[],
    tally: SweepCounter,
    { ahead = 0, signal }: SweepOptions,
  ): Promise<void> {
    for (const bucket of await this.#bucketsOf(partitions, ahead, tally)) {
      if (signal?.aborted) break;
      tally.result.buckets++;
      await this.#sweep(bucket, tally, signal);
    }
  }

  /** The clock of the node that has a partition, in epoch milliseconds. */
  async #clockOf({ prefix }: SessionKeys): Promise<number> {
    const [seconds, microseconds] = await nodeWith(this.client, prefix).time();
    return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
  }

  /** The due buckets of partitions on one node, the oldest first. */
  async #bucketsOf(partitions: readonly SessionKeys[], ahead: number, tally: SweepCounter): Promise<Bucket[]> {
    const now = await this.#clockOf(partitions[0]!);
    const buckets = partitions.map(async (partition) => {
      const minutes = await this.client
        .zrangebyscore(partition.bucketList, '-inf', now + ahead)
        .catch((error: unknown) => {
          if (!isReply(error, 'WRONGTYPE')) throw error;
          tally.failures.push(error);
          return [];
        });
      return minutes.map((minute) => ({ partition, minute, now }));
    });
    return (await Promise.all(buckets)).flat().toSorted((a, b) => Number(a.minute) - Number(b.minute));
  }

  async #sweep(bucket: Bucket, tally: SweepCounter, signal?: AbortSignal): Promise<void> {
    let isLastTaken = false;
    // Once for each batch, however many pages without members follow.
    const hasMet = () => {
      const isTaken = isLastTaken;
      isLastTaken = false;
      return isTaken;
    };
    for await (const batch of this.#batches(bucket, hasMet)) {
      if (signal?.aborted) return;
      const claim = () => this.scripts.claimExpired(bucket.partition, batch, bucket.minute);
      await this.limiter.run(claim, bucket.partition.prefix).then(
        (claims) => {
          countBatch(bucket, batch, claims, tally);
          isLastTaken = isMostlyTaken(claims);
        },
        (error: unknown) => tally.failures.push(error),
      );
    }
  }

  /**
   * The members of a bucket, and then an empty batch, with which the script cleans up the bucket itself. `hasMet`:
   * whether others have claimed most of the last batch; true once for each batch.
   */
  async *#batches(bucket: Bucket, hasMet: () => boolean): AsyncIterable<string[]> {
    // Redis returns a few more members than COUNT, and a small set whole. What is left of a page waits for the next
    // one, which may have the same members again.
    const left = new Set<string>();
    for await (const members of this.#members(bucket, hasMet)) {
      for (const member of members) left.add(member);
      while (left.size >= this.batchSize) yield taken(left, this.batchSize);
    }
    if (left.size > 0) yield taken(left, this.batchSize);
    yield [];
  }

  /** A page is read after claims of the last one. SSCAN returns a member at least once unless it leaves the set. */
  async *#members(bucket: Bucket, hasMet: () => boolean): AsyncIterable<string[]> {
    const key = bucket.partition.bucket(bucket.minute);
    const scan: ReadPage = (cursor) => this.client.sscan(key, cursor, 'COUNT', MEMBERS_PER_PAGE);
    const read: ReadPage = (cursor) => this.limiter.run(() => scan(cursor), bucket.partition.prefix);
    try {
      yield* pagesFromAnywhere(read, hasMet);
    } catch (error) {
      if (!isReply(error, 'WRONGTYPE')) throw error;
      const { partition, minute } = bucket;
      for await (const ids of sessionsRecordedIn(this.client, partition, minute))
        yield ids.map((id) => partition.memberOf(id));
    }
  }
}

function countBatch(
  { partition, minute, now }: Bucket,
  members: readonly string[],
  claims: readonly Claim[],
  tally: SweepCounter,
): void {
  for (const [i, claim] of claims.entries()) tally.count(partition, members[i], claim, Number(minute), now);
}

/** Takes up to `count` members out of the set. */
function taken(members: Set<string>, count: number): string[] {
  const batch = [...members].slice(0, count);
  for (const member of batch) members.delete(member);
  return batch;
}

/** Whether others have claimed most of a batch. */
function isMostlyTaken(claims: readonly Claim[]): boolean {
  return claims.filter(({ outcome }) => outcome === 'already').length > claims.length / 2;
}

/**
 * All pages of a scan, and before most of them some from a random cursor on: instances that scan the same set at the
 * same time begin at different places, and part where they meet.
 */
async function* pagesFromAnywhere(read: ReadPage, hasMet: () => boolean): AsyncIterable<string[]> {
  const [second, items] = await read('0');
  yield items;
  if (second === '0') return;
  yield* pagesFromRandom(read, hasMet);
  for await (const page of pages(read, second)) {
    yield page;
    if (hasMet()) yield* pagesFromRandom(read, hasMet);
  }
}

/** The pages from a random cursor on, up to where another instance is, or was. */
async function* pagesFromRandom(read: ReadPage, hasMet: () => boolean): AsyncIterable<string[]> {
  for await (const page of pages(read, `${randomInt(HIGHEST_CURSOR)}`)) {
    yield page;
    if (page.length === 0 || hasMet()) return;
  }
}
