import { setTimeout as delay } from 'node:timers/promises';
import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { resolveRedisSessionOptions } from '../../../session-redis/src/configuration/redis-session.options.js';
import { type DeadlineKeys, DeadlinePartitions, memberOf } from '../../../deadlines/src/redis/deadline-keys.js';
import { DeadlineScripts } from '../../../deadlines/src/scripts/deadlines/deadline.scripts.js';
import type { Rule } from '../../src/verification/rules.js';
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
    // Redis does not look into the data and their key.
    const data = { text: 'AAAA', dataKey: '1:data-key' };
    const rest = { ifExists: 'replace', traceparent: '00-trace-span-01', data } as const;
    const deadline = { member, key, id: `id of ${key}`, due: { in: wait }, ...rest };
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

  /** Copies the victim to another partition than its key says. */
  async copyElsewhere(): Promise<DeadlineKeys> {
    const to = this.partitions.all.find((keys) => keys !== this.keys)!;
    const due = (await this.client.zscore(this.due, this.member))!;
    await this.client.copy(this.hash, to.deadline(this.member));
    await this.client.zadd(to.due(NAME), due, this.member);
    await this.client.zadd(to.names, 'LT', due, NAME);
    return to;
  }

  /** Moves it there. */
  async misplace(): Promise<DeadlineKeys> {
    const to = await this.copyElsewhere();
    await this.client.del(this.hash);
    await this.client.zrem(this.due, this.member);
    return to;
  }

  /** What a dump of Redis has of the others: their hashes, and where they wait. */
  ofOthers(dump: Record<string, unknown>): Record<string, unknown> {
    const mine = Object.entries(dump).flatMap(([key, value]) => {
      if (key === this.hash || key.includes(':events')) return [];
      const { content, ...rest } = value as { readonly content: unknown };
      if (!Array.isArray(content)) return [[key, value]];
      const at = content.indexOf(this.member);
      return [[key, { ...rest, content: at < 0 ? content : content.toSpliced(at, 2) }]];
    });
    return Object.fromEntries(mine) as Record<string, unknown>;
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
  /** What it breaks cannot be as it was: something was lost, or has fired. */
  readonly changes?: true;
}

/** How what is recorded of deadlines breaks. */
export const DEADLINE_PLANTS: Partial<Record<Rule, DeadlinePlant>> = {
  'deadline-misplaced': { needsSeveral: true, plant: (deadlines) => deadlines.misplace() },
  'deadline-expires': { plant: ({ client, hash }) => client.pexpire(hash, HOUR) },
  'deadline-not-scheduled': { plant: ({ client, due, member }) => client.zrem(due, member) },
  'fired-deadline-stays': {
    changes: true,
    plant: async (deadlines) => {
      await deadlines.fire();
      await deadlines.client.persist(deadlines.hash);
    },
  },
  'due-without-deadline': { changes: true, plant: ({ client, hash }) => client.del(hash) },
  'name-not-scheduled': { plant: ({ client, keys }) => client.zrem(keys.names, NAME) },
};

/** Other ways in which it breaks: another time, where above there is none. */
export const OTHER_DEADLINE_PLANTS: [rule: Rule, plant: DeadlinePlant][] = [
  ['deadline-not-scheduled', { plant: ({ client, due, member }) => client.zincrby(due, HOUR, member) }],
  ['name-not-scheduled', { plant: ({ client, keys }) => client.zincrby(keys.names, HOUR, NAME) }],
];
