import type { Redis } from 'ioredis';
import { groupedBy, isReply } from '@nest-session/redis-events/internal';
import { ID_PATTERN, pages, type SessionKeys, type SessionPartitions } from '@nest-session/redis/internal';
import { inBatches, type ScannedKey, scannedKeys } from './scanned-keys.js';

// The reply of PEXPIRETIME for a missing key.
const NO_KEY = -2;
const KEYS_AT_ONCE = 50;
const MEMBERS_PER_CALL = 500;

// The patterns match exactly: another namespace can begin with this one, as `app:sessions` with `app`.
const OF_ONE = new RegExp(`^(?:sessions:(?:expires:|forwarded:|taken-over:)?|ledger:|marks:)(${ID_PATTERN})$`);
const BUCKET = /^expirations:(\d+)$/;
const BY_ID = /^(?:ends|index:[^]+:[\w-]{43})$/;
const REVOCATION = /^revoked:[^]+:[\w-]{43}$/;
/** Of a live session: what is kept of an ended one has no shadow key. */
const SHADOW = new RegExp(`^sessions:expires:${ID_PATTERN}$`);

/**
 * Moves all keys but those of events. It copies each one with its end before it removes it, so it can be interrupted
 * at any point and run again. Nothing else may change the keys meanwhile.
 */
export class KeyRepartition {
  #found = 0;
  #sessions = 0;
  readonly #problems = new Map<string, string>();

  constructor(
    private readonly client: Redis,
    private readonly from: SessionPartitions,
    private readonly to: SessionPartitions,
  ) {}

  /** Returns the keys that could not be moved, with the reasons. */
  async run(report: (moved: number) => void): Promise<ReadonlyMap<string, string>> {
    await this.#moveEpoch();
    do {
      this.#found = 0;
      for await (const keys of scannedKeys(this.client, this.from, '*')) {
        await inBatches(keys, KEYS_AT_ONCE, (key) => this.#move(key));
        report(this.#sessions);
        this.#sessions = 0;
      }
    } while (this.#found > 0);
    if (this.#problems.size === 0) await inBatches(this.from.all, KEYS_AT_ONCE, (keys) => this.#clear(keys));
    return this.#problems;
  }

  /** Copies the latest epoch, which counts for all sessions. The instances end the sessions that it makes invalid. */
  async #moveEpoch(): Promise<void> {
    const all = [...this.from.all, ...this.to.all];
    const epochs = await Promise.all(all.map(({ epoch }) => this.client.hget(epoch, 'at')));
    const latest = Math.max(...epochs.map(Number));
    if (latest === 0) return;
    await inBatches(this.to.all, KEYS_AT_ONCE, async ({ epoch }) => {
      await this.client.hset(epoch, 'at', latest);
      await this.client.hdel(epoch, 'ended');
    });
  }

  async #move(scanned: ScannedKey): Promise<void> {
    const { key, name, partition } = scanned;
    try {
      const [, id] = OF_ONE.exec(name) ?? [];
      const [, minute] = BUCKET.exec(name) ?? [];
      // With one partition, nothing updates a ledger, so it would be wrong when there are several partitions again. It
      // is then created anew from the indexes.
      if (name.startsWith('ledger:') && this.to.count === 1) this.#found += await this.client.unlink(key);
      else if (id !== undefined) await this.#moveWhole(scanned, this.to.of(id));
      else if (minute !== undefined) await this.#moveBucket(partition, minute);
      else if (BY_ID.test(name)) await this.#moveEntries(scanned);
      else if (REVOCATION.test(name)) await this.#moveRevocation(scanned);
    } catch (error) {
      if (!isReply(error, 'WRONGTYPE')) throw error;
      this.#problems.set(key, error.message);
    }
  }

  async #moveWhole({ key, name, partition }: ScannedKey, to: SessionKeys): Promise<void> {
    if (to.prefix === partition.prefix) return;
    const [data, end] = await Promise.all([this.client.dumpBuffer(key), this.client.pexpiretime(key)]);
    // Redis creates no key whose end has passed, so a session that expires now no longer has a shadow key.
    if (data && end !== NO_KEY) {
      await this.client.restore(`${to.prefix}${name}`, Math.max(end, 0), data, 'REPLACE', 'ABSTTL');
    }
    this.#found += await this.client.unlink(key);
    if (SHADOW.test(name)) this.#sessions++;
  }

  async #moveBucket(from: SessionKeys, minute: string): Promise<void> {
    const bucket = from.bucket(minute);
    const read = (cursor: string) => this.client.sscan(bucket, cursor, 'COUNT', MEMBERS_PER_CALL);
    for await (const members of pages(read)) {
      for (const [to, its] of this.#byPartition(from, members, (member) => from.idOfMember(member))) {
        await this.client.sadd(to.bucket(minute), ...its);
        await this.client.zadd(to.bucketList, minute, minute);
        this.#found += await this.client.srem(bucket, ...its);
      }
    }
  }

  async #moveEntries({ key, name, partition }: ScannedKey): Promise<void> {
    const read = (cursor: string) => this.client.zscan(key, cursor, 'COUNT', MEMBERS_PER_CALL);
    for await (const reply of pages(read)) {
      const entries = reply.flatMap((id, i) => (i % 2 === 0 ? [{ id, score: reply[i + 1]! }] : []));
      for (const [to, its] of this.#byPartition(partition, entries, ({ id }) => id)) {
        await this.client.zadd(`${to.prefix}${name}`, ...its.flatMap(({ id, score }) => [score, id]));
        this.#found += await this.client.zrem(key, ...its.map(({ id }) => id));
      }
    }
  }

  /** Copies a revocation mark to all partitions, because any of them may take over a session. */
  async #moveRevocation({ key, name, partition }: ScannedKey): Promise<void> {
    const end = await this.client.pexpiretime(key);
    if (end === NO_KEY) return;
    await inBatches(this.to.all, KEYS_AT_ONCE, async (to) => {
      const copy = `${to.prefix}${name}`;
      await (end < 0 ? this.client.set(copy, '') : this.client.set(copy, '', 'PXAT', end));
    });
    if (!this.#stays(partition)) this.#found += await this.client.unlink(key);
  }

  /** Removes keys that belong to no session and, in a partition that stays, the minutes whose buckets have left. */
  async #clear(keys: SessionKeys): Promise<void> {
    if (this.#stays(keys)) {
      for (const minute of await this.client.zrange(keys.bucketList, '0', '-1')) {
        if ((await this.client.exists(keys.bucket(minute))) === 0) await this.client.zrem(keys.bucketList, minute);
      }
      return;
    }
    for (const key of [keys.bucketList, keys.epoch, keys.cleanup]) await this.client.unlink(key);
  }

  #byPartition<T>(from: SessionKeys, items: readonly T[], idOf: (item: T) => string): Map<SessionKeys, T[]> {
    const leaving = items.filter((item) => this.to.of(idOf(item)).prefix !== from.prefix);
    return groupedBy(leaving, (item) => this.to.of(idOf(item)));
  }

  #stays({ prefix }: SessionKeys): boolean {
    return this.to.all.some((keys) => keys.prefix === prefix);
  }
}
