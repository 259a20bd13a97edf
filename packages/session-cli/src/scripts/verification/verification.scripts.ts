import { FIRED_KNOWN_FOR } from '@nest-session/deadlines/internal';
import type { Redis } from 'ioredis';
import {
  defineScripts,
  loadScripts,
  type PartitionKeys,
  type ScriptsByName,
} from '@nest-session/redis-events/internal';
import { type SessionKeys, sourcesIn } from '@nest-session/redis/internal';
import { DEADLINE_SOURCES, type DeadlineKeys } from '@nest-session/deadlines/redis/internal';
import type { Rule } from '../../verification/rules.js';
import { LUA_SOURCES } from '../lua-sources.js';

/** What breaks a rule. */
export interface Problem {
  /** The key, id, member or position. */
  readonly what: string;
  readonly rule: Rule;
}

/** What a key has to be. `life`: whether it stays, or goes; milliseconds that it has at most. */
export interface ExpectedKey {
  readonly key: string;
  readonly type: 'hash' | 'set' | 'stream' | 'string' | 'zset';
  readonly life: 'never' | 'any' | number;
}

/** Milliseconds that mended data is kept. */
export interface MendingRules {
  /** By which a session hash outlives its session. */
  readonly grace: number;
  /** For which a session hash is kept after the end. */
  readonly retention: number;
}

/**
 * Which sessions of a partition: those that belong there, those of other partitions, and those that are there as well;
 * hash: only whether they have a session hash.
 */
type SessionPlace = 'all' | 'misplaced' | 'copies' | 'hash';

const ASIDE_FOR = 30 * 86_400_000;
/** Milliseconds. The cleanup comes every minute, and an instance that takes over may need as long. */
const PATIENCE = 5 * 60_000;
const LETTERS_PER_CALL = 10;
const MOST_RECORDS = 10_000;

const SOURCES = loadScripts({ ...sourcesIn('buckets'), ...DEADLINE_SOURCES, ...LUA_SOURCES }, 'verification', {
  verifyKeys: 'verify-keys',
  verifySessions: 'verify-sessions',
  verifyMembers: 'verify-members',
  verifyMinutes: 'verify-minutes',
  verifyIndex: 'verify-index',
  verifyGroup: 'verify-group',
  verifyLetters: 'verify-letters',
  verifyLetterRecords: 'verify-letter-records',
  verifyDeadlines: 'verify-deadlines',
  verifyDue: 'verify-due',
});

/**
 * The scripts that look for what breaks a rule of the data model. Each looks at a few things of one partition, at one
 * moment: what it finds was there. With `mends`, it mends it at the same moment.
 */
export class VerificationScripts {
  readonly #scripts: ScriptsByName<keyof typeof SOURCES>;
  readonly #mends: 0 | 1;

  constructor(client: Redis, mends: boolean) {
    this.#scripts = defineScripts(client, SOURCES);
    this.#mends = mends ? 1 : 0;
  }

  async keys(prefix: string, all: readonly ExpectedKey[]): Promise<Problem[]> {
    const names = all.map(({ key }) => key);
    const args = [this.#mends, prefix, ASIDE_FOR, ...all.flatMap(({ type, life }) => [type, life])];
    const reply = (await this.#scripts.verifyKeys(names.length, names, args)) as (string | number)[];
    return toProblems(reply.map((each) => (typeof each === 'number' ? names[each - 1]! : each)));
  }

  async sessions(
    { bucketList, events, prefix }: SessionKeys,
    ids: readonly string[],
    { grace, retention }: MendingRules,
    place: SessionPlace = 'all',
  ): Promise<Problem[]> {
    const args = [this.#mends, prefix, grace, retention, place, ...ids];
    return toProblems(await this.#scripts.verifySessions(2, bucketList, events, args));
  }

  /** `minute`: undefined for the sorted set of ends. */
  async members(partition: SessionKeys, minute: string | undefined, members: readonly string[]): Promise<Problem[]> {
    const { bucketList, ends, prefix } = partition;
    const place = minute === undefined ? ends : partition.bucket(minute);
    const args = [this.#mends, prefix, minute ?? '', PATIENCE, ...members];
    return toProblems(await this.#scripts.verifyMembers(2, place, bucketList, args));
  }

  async minutes({ bucketList, prefix }: SessionKeys, minutes: readonly string[]): Promise<Problem[]> {
    return toProblems(await this.#scripts.verifyMinutes(1, bucketList, [this.#mends, prefix, ...minutes]));
  }

  async index(index: string, { prefix }: SessionKeys, ids: readonly string[]): Promise<Problem[]> {
    return toProblems(await this.#scripts.verifyIndex(1, index, [this.#mends, prefix, ...ids]));
  }

  async group(partition: PartitionKeys, group: string, positions: readonly string[]): Promise<Problem[]> {
    const all = [partition.events, partition.failing(group), partition.retries(group)];
    return toProblems(await this.#scripts.verifyGroup(all.length, all, [this.#mends, group, ...positions]));
  }

  /** The next ones behind a position. `last`: undefined when there are no more. */
  async letters(
    { deadLetters }: PartitionKeys,
    after: string,
  ): Promise<{ readonly last: string | undefined; readonly problems: Problem[] }> {
    const reply = await this.#scripts.verifyLetters(1, deadLetters, [this.#mends, after, LETTERS_PER_CALL]);
    const [last, ...problems] = reply as string[];
    return { last: last === '' ? undefined : last, problems: toProblems(problems) };
  }

  /** Without members, their bytes. */
  async letterRecords({ deadLetters }: PartitionKeys, members: readonly string[]): Promise<Problem[]> {
    return toProblems(await this.#scripts.verifyLetterRecords(1, deadLetters, [this.#mends, MOST_RECORDS, ...members]));
  }

  /** `place`: whether they belong to the partition. The caller moves those that do not. */
  async deadlines(
    { names, prefix }: DeadlineKeys,
    members: readonly string[],
    place: 'all' | 'misplaced' = 'all',
  ): Promise<Problem[]> {
    const args = [this.#mends, prefix, FIRED_KNOWN_FOR, place, ...members];
    return toProblems(await this.#scripts.verifyDeadlines(1, names, args));
  }

  /** `mostBytes`: of the partition's dead letters. */
  async due(partition: DeadlineKeys, name: string, members: readonly string[], mostBytes: number): Promise<Problem[]> {
    const { names, deadLetters, prefix } = partition;
    const args = [this.#mends, prefix, name, mostBytes, ...members];
    return toProblems(await this.#scripts.verifyDue(3, partition.due(name), names, deadLetters, args));
  }
}

function toProblems(reply: unknown): Problem[] {
  const words = reply as string[];
  return Array.from({ length: words.length / 2 }, (_, i) => ({
    what: words[2 * i]!,
    rule: words[2 * i + 1] as Rule,
  }));
}
