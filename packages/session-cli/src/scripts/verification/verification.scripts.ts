import { FIRED_KNOWN_FOR } from '@nest-session/deadlines/internal';
import { DEADLINE_SOURCES, type DeadlineKeys } from '@nest-session/deadlines/redis/internal';
import { defineScripts, loadScripts, type PartitionKeys } from '@nest-session/redis-events/internal';
import { type SessionKeys, sourcesIn } from '@nest-session/redis/internal';
import type { Redis } from 'ioredis';
import type { Rule } from '../../verification/rules.js';
import { LUA_SOURCES } from '../lua-sources.js';

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

/** Milliseconds: by which a session hash outlives its session, and for which it is kept after the end. */
export interface MendingRules {
  readonly grace: number;
  readonly retention: number;
}

const ASIDE_FOR = 30 * 86_400_000;
/** Milliseconds. The cleanup comes every minute, and an instance that takes over may need as long. */
const PATIENCE = 5 * 60_000;
const LETTERS_PER_CALL = 10;
const MOST_RECORDS = 10_000;

const SCRIPTS = loadScripts({ ...sourcesIn('buckets'), ...DEADLINE_SOURCES, ...LUA_SOURCES }, 'verification');

type ScriptName = keyof typeof SCRIPTS;
type Arguments = readonly (string | number)[];

/**
 * The scripts that look for what breaks a rule of the data model. Each looks at a few things of one partition, at one
 * moment: what it finds was there. With `mends`, it mends it at the same moment.
 */
export class VerificationScripts {
  readonly #words: (script: ScriptName, keys: readonly string[], args: Arguments) => Promise<string[]>;

  constructor(client: Redis, mends: boolean) {
    const run = defineScripts(client, SCRIPTS);
    this.#words = (script, keys, args) => run(script, keys, [mends ? 1 : 0, ...args]);
  }

  keys(prefix: string, all: readonly ExpectedKey[]): Promise<Problem[]> {
    const [names, expected] = [all.map(({ key }) => key), all.flatMap(({ type, life }) => [type, life])];
    return this.#find('verify-keys', names, prefix, ASIDE_FOR, ...expected);
  }

  /** `place`: that of the ids; with `hash`, the script looks only whether they have a session hash. */
  sessions(
    { bucketList, events, prefix }: SessionKeys,
    ids: readonly string[],
    { grace, retention }: MendingRules,
    place: 'all' | 'misplaced' | 'copies' | 'hash' = 'all',
  ): Promise<Problem[]> {
    return this.#find('verify-sessions', [bucketList, events], prefix, grace, retention, place, ...ids);
  }

  /** `minute`: undefined for the sorted set of ends. */
  members(partition: SessionKeys, minute: string | undefined, members: readonly string[]): Promise<Problem[]> {
    const { bucketList, ends, prefix } = partition;
    const place = minute === undefined ? ends : partition.bucket(minute);
    return this.#find('verify-members', [place, bucketList], prefix, minute ?? '', PATIENCE, ...members);
  }

  minutes({ bucketList, prefix }: SessionKeys, minutes: readonly string[]): Promise<Problem[]> {
    return this.#find('verify-minutes', [bucketList], prefix, ...minutes);
  }

  index(index: string, { prefix }: SessionKeys, ids: readonly string[]): Promise<Problem[]> {
    return this.#find('verify-index', [index], prefix, ...ids);
  }

  group(partition: PartitionKeys, group: string, positions: readonly string[]): Promise<Problem[]> {
    const keys = [partition.events, partition.failing(group), partition.retries(group)];
    return this.#find('verify-group', keys, group, ...positions);
  }

  /** What is wrong with the dead letters in a stream, a few at a time. */
  async *letters(deadLetters: string): AsyncIterable<Problem[]> {
    for (let after = '0-0'; after !== '';) {
      const [last = '', ...words] = await this.#words('verify-letters', [deadLetters], [after, LETTERS_PER_CALL]);
      yield toProblems(words);
      after = last;
    }
  }

  /** Without members, their bytes. */
  letterRecords({ deadLetters }: PartitionKeys, members: readonly string[]): Promise<Problem[]> {
    return this.#find('verify-letter-records', [deadLetters], MOST_RECORDS, ...members);
  }

  /** `place`: whether they belong to the partition. The caller moves those that do not. */
  deadlines(
    { names, prefix }: DeadlineKeys,
    members: readonly string[],
    place: 'all' | 'misplaced' = 'all',
  ): Promise<Problem[]> {
    return this.#find('verify-deadlines', [names], prefix, FIRED_KNOWN_FOR, place, ...members);
  }

  /** `mostBytes`: of the partition's dead letters. */
  due(partition: DeadlineKeys, name: string, members: readonly string[], mostBytes: number): Promise<Problem[]> {
    const { names, deadLetters, prefix } = partition;
    return this.#find('verify-due', [partition.due(name), names, deadLetters], prefix, name, mostBytes, ...members);
  }

  async #find(script: ScriptName, keys: readonly string[], ...args: Arguments): Promise<Problem[]> {
    return toProblems(await this.#words(script, keys, args));
  }
}

function toProblems(words: readonly string[]): Problem[] {
  return words.flatMap((what, i) => (i % 2 === 0 ? [{ what, rule: words[i + 1] as Rule }] : []));
}
