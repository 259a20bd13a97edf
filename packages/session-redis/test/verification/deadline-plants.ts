import { setTimeout as delay } from 'node:timers/promises';
import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { resolveRedisSessionOptions } from '../../src/configuration/redis-session.options.js';
import { type DeadlineKeys, DeadlinePartitions, memberOf } from '../../src/keys/deadline-keys.js';
import { DeadlineScripts } from '../../src/scripts/deadlines/deadline.scripts.js';
import type { Rule } from '../../src/scripts/verification/verification.scripts.js';
import type { VerifiedStore } from '../../src/verification/verify.js';

const HOUR = 3_600_000;
const NAME = 'order';

/** Deadlines in Redis, of which one is the victim. */
export class DeadlinesToVerify {
  readonly client: Redis;
  readonly partitions: DeadlinePartitions;
  readonly others = Array.from({ length: 12 }, (_, i) => `order-${i}`);
  readonly #scripts: DeadlineScripts;

  private constructor(
    private readonly server: RedisServer,
    partitions: number,
  ) {
    this.client = new Redis(server.url);
    this.partitions = new DeadlinePartitions('nest:deadlines', partitions);
    this.#scripts = new DeadlineScripts(this.client);
  }

  static async open(partitions: number): Promise<DeadlinesToVerify> {
    const opened = new DeadlinesToVerify(await RedisServer.start(), partitions);
    await opened.client.hset(opened.partitions.meta, { version: '3', partitions, holds: 'deadlines' });
    for (const key of [...opened.others, 'victim']) await opened.schedule(key, HOUR);
    return opened;
  }

  get store(): VerifiedStore {
    const { client, partitions } = this;
    return { client, partitions, options: resolveRedisSessionOptions({}) };
  }

  get member(): string {
    return memberOf(NAME, 'victim');
  }

  get keys(): DeadlineKeys {
    return this.partitions.of(this.member);
  }

  get hash(): string {
    return this.keys.deadline(this.member);
  }

  get due(): string {
    return this.keys.due(NAME);
  }

  async schedule(key: string, wait: number): Promise<void> {
    const member = memberOf(NAME, key);
    const data = { text: '"a"', dataKey: undefined };
    const deadline = { member, key, id: key, due: { in: wait }, ifExists: 'replace', data } as const;
    await this.#scripts.schedule(this.partitions.of(member), NAME, [deadline], 100);
  }

  /** Lets the victim fire. */
  async fire(): Promise<void> {
    await this.client.hset(this.keys.wanted, 'default', NAME);
    await this.schedule('victim', 0);
    await delay(2);
    const rules = { batchSize: 10, maxLength: 100, knownFor: HOUR, maxDeadLetterSize: 1_000_000 };
    const { entries } = await this.#scripts.fire(this.keys, rules);
    expect(entries).toHaveLength(1);
  }

  /** Moves the victim to another partition than its key says. */
  async misplace(): Promise<DeadlineKeys> {
    const to = this.partitions.all.find((keys) => keys !== this.keys)!;
    const due = (await this.client.zscore(this.due, this.member))!;
    await this.client.rename(this.hash, to.deadline(this.member));
    await this.client.zrem(this.due, this.member);
    await this.client.zadd(to.due(NAME), due, this.member);
    await this.client.zadd(to.names, 'LT', due, NAME);
    return to;
  }

  /** The keys of those that wait. */
  async waiting(): Promise<string[]> {
    const page = { before: undefined, after: undefined, limit: 100 };
    const places = await Promise.all(this.partitions.all.map((keys) => this.#scripts.list(keys, NAME, page)));
    const found = places.flat().map(({ keys, member }) => this.client.hget(keys.deadline(member), 'key'));
    return (await Promise.all(found)).filter((key) => key !== null);
  }

  async close(): Promise<void> {
    this.client.disconnect();
    await this.server.stop();
  }
}

interface DeadlinePlant {
  readonly plant: (deadlines: DeadlinesToVerify) => Promise<unknown>;
  /** What it breaks besides. */
  readonly with?: readonly Rule[];
  /** With several partitions alone. */
  readonly needsSeveral?: true;
}

/** How what is recorded of deadlines breaks. */
export const DEADLINE_PLANTS: Partial<Record<Rule, DeadlinePlant>> = {
  'deadline-misplaced': { needsSeveral: true, plant: (deadlines) => deadlines.misplace() },
  'deadline-expires': { plant: ({ client, hash }) => client.pexpire(hash, HOUR) },
  'deadline-not-scheduled': { plant: ({ client, due, member }) => client.zrem(due, member) },
  'fired-deadline-stays': {
    plant: async (deadlines) => {
      await deadlines.fire();
      await deadlines.client.persist(deadlines.hash);
    },
  },
  'due-without-deadline': { plant: ({ client, hash }) => client.del(hash) },
  'name-not-scheduled': { plant: ({ client, keys }) => client.zrem(keys.names, NAME) },
};
