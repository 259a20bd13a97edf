import { FORWARDING_TIME } from '@nest-session/core/internal';
import { FIRED_KNOWN_FOR } from '@nest-session/deadlines/internal';
import type { DeadlineKeys, DeadlinePartitions, DeadlineScripts } from '@nest-session/deadlines/redis/internal';
import { DEAD_LETTER_BYTES, type PartitionKeys, type Partitions } from '@nest-session/redis-events/internal';
import {
  ID_PATTERN,
  type SessionKeys,
  type SessionPartitions,
  type SessionScripts,
} from '@nest-session/redis/internal';
import type { Redis } from 'ioredis';
import type { Problem, VerificationScripts } from '../scripts/verification/verification.scripts.js';
import { streamPages } from '../repartitioning/scanned-keys.js';
import type { Rule } from './rules.js';

export interface FoundKey<Keys extends PartitionKeys> {
  readonly key: string;
  readonly partition: Keys;
  /** The id, minute, name or group in its name; empty where there is none. */
  readonly part: string;
}

interface Look {
  readonly items: number;
  readonly problems: readonly Problem[];
}

export interface KeyKind<Keys extends PartitionKeys> {
  /** Matches what comes after the prefix, exactly: another namespace may begin with this one. */
  readonly name: RegExp;
  readonly type: 'hash' | 'set' | 'stream' | 'string' | 'zset';
  /** Whether a key stays, or goes; milliseconds that it has at most. */
  readonly life: 'never' | 'any' | number;
  /** Looks at some of the keys, which are in one partition. */
  readonly verify?: (partition: Keys, parts: readonly string[]) => Promise<Problem[]>;
  /** Looks at some members, or fields, of a key. */
  readonly items?: (found: FoundKey<Keys>, items: readonly string[]) => Promise<Problem[]>;
  /** Looks at what else is in a key, a few entries at a time. */
  readonly contents?: (found: FoundKey<Keys>) => AsyncIterable<Look>;
}

function keys<Keys extends PartitionKeys>(
  name: RegExp,
  type: KeyKind<Keys>['type'],
  life: KeyKind<Keys>['life'],
  looks: Pick<KeyKind<Keys>, 'verify' | 'items' | 'contents'> = {},
): KeyKind<Keys> {
  return { name, type, life, ...looks };
}

export const PER_CALL = 50;
const MINUTE = 60_000;
const DAY = 86_400_000;
/** With more of them, the bytes of dead letters are not added up. */
const MOST_RECORDS = 10_000;

export function eventKinds(client: Redis, scripts: VerificationScripts): KeyKind<PartitionKeys>[] {
  const inGroup = (partition: PartitionKeys, group: string, positions: readonly string[]) => {
    const own = [partition.events, partition.failing(group), partition.retries(group)];
    return scripts.find('verify-group', own, group, ...positions);
  };
  const ofGroup = ({ partition, part }: FoundKey<PartitionKeys>, positions: readonly string[]) =>
    inGroup(partition, part, positions);
  const letterRecords = ({ partition }: FoundKey<PartitionKeys>, members: readonly string[]) =>
    scripts.find('verify-letter-records', [partition.deadLetters], MOST_RECORDS, ...members);
  const bytes = async (found: FoundKey<PartitionKeys>) => ({ items: 1, problems: await letterRecords(found, []) });
  return [
    keys(/^cleanup$/, 'string', 10 * MINUTE),
    keys(/^events$/, 'stream', 'never', { contents: ({ partition }) => pendingEvents(client, inGroup, partition) }),
    keys(/^events:failing:([^]+)$/, 'hash', 'never', { items: ofGroup }),
    keys(/^events:retries:([^]+)$/, 'zset', 'never', { items: ofGroup }),
    keys(/^events:(?:handlers|wanted|thinned|dropped)$/, 'hash', 'never'),
    keys(/^events:trimmed$/, 'string', 'never'),
    keys(/^events:wanted:broadcast:[^]+$/, 'string', DAY),
    keys(/^events:dead$/, 'stream', 'never', {
      contents: async function* ({ partition }) {
        for await (const problems of scripts.letters(partition.deadLetters)) yield { items: 1, problems };
      },
    }),
    keys(/^events:dead:index$/, 'zset', 'never', {
      items: letterRecords,
      // The bytes of each kind are looked at where they are recorded, and here where that is gone.
      contents: async function* (found) {
        if ((await client.exists(`${found.partition.deadLetters}:sizes`)) === 0) yield bytes(found);
      },
    }),
    keys(/^events:dead:sizes$/, 'hash', 'never', {
      contents: async function* (found) {
        yield bytes(found);
      },
    }),
    keys(/^events:dead:(?:lost|unreported)$/, 'hash', 'never'),
  ];
}

async function* pendingEvents(
  client: Redis,
  inGroup: (partition: PartitionKeys, group: string, positions: readonly string[]) => Promise<Problem[]>,
  partition: PartitionKeys,
): AsyncIterable<Look> {
  const groups = (await client.xinfo('GROUPS', partition.events)) as string[][];
  for (const group of groups.map((fields) => fields[fields.indexOf('name') + 1]!)) {
    const read = async (from: string) =>
      (await client.xpending(partition.events, group, from, '+', PER_CALL)) as [position: string][];
    for await (const pending of streamPages(read)) {
      const positions = pending.map(([position]) => position);
      yield { items: positions.length, problems: await inGroup(partition, group, positions) };
    }
  }
}

/** What claim-expired mends: the problems of members. */
const OF_MEMBERS: readonly Rule[] = [
  'end-overdue',
  'stray-member',
  'member-without-session',
  'member-of-ended-session',
  'member-twice',
];

/** The place of members in the sorted set, as claim-expired names it. */
const IN_SET = 'ends';

/** Milliseconds. The cleanup comes every minute, and an instance that takes over may need as long. */
const PATIENCE = 5 * MINUTE;

/** Milliseconds: by which a session hash outlives its session, and for which it is kept after the end. */
interface MendingRules {
  readonly grace: number;
  readonly retention: number;
}

/** `claims` mends members; undefined where nothing is mended. */
export function sessionKinds(
  client: Redis,
  partitions: SessionPartitions,
  scripts: VerificationScripts,
  claims: SessionScripts | undefined,
  { grace, retention }: MendingRules,
): KeyKind<SessionKeys>[] {
  const look = ({ bucketList, events, prefix }: SessionKeys, ids: readonly string[], place: string) =>
    scripts.find('verify-sessions', [bucketList, events], prefix, grace, retention, place, ...ids);
  const sessions = async (partition: SessionKeys, ids: readonly string[]): Promise<Problem[]> => {
    const elsewhere = await misplacedParts(client, partitions, partition, ids);
    const found = await Promise.all(elsewhere.map((id) => client.exists(partitions.of(id).session(id))));
    const places = {
      all: ids.filter((id) => !elsewhere.includes(id)),
      misplaced: elsewhere.filter((_, i) => found[i] === 0),
      copies: elsewhere.filter((_, i) => found[i] === 1),
    };
    const problems: Problem[] = [];
    for (const place of ['all', 'misplaced', 'copies'] as const) {
      if (places[place].length > 0) problems.push(...(await look(partition, places[place], place)));
    }
    return problems;
  };
  const members = async (partition: SessionKeys, minute: string | undefined, all: readonly string[]) => {
    const { bucketList, ends, prefix } = partition;
    const place = minute === undefined ? ends : partition.bucket(minute);
    const problems = await scripts.find('verify-members', [place, bucketList], prefix, minute ?? '', PATIENCE, ...all);
    const wrong = problems.filter(({ rule }) => OF_MEMBERS.includes(rule)).map(({ what }) => what);
    if (wrong.length > 0) await claims?.claimExpired(partition, wrong, minute ?? IN_SET);
    return problems;
  };
  return [
    keys(new RegExp(`^sessions:(${ID_PATTERN})$`), 'hash', 'any', { verify: sessions }),
    // What its session lacks is found with the session hash, if there is one.
    keys(new RegExp(`^sessions:expires:(${ID_PATTERN})$`), 'string', 'any', {
      verify: (partition, ids) => look(partition, ids, 'hash'),
    }),
    keys(new RegExp(`^sessions:forwarded:${ID_PATTERN}$`), 'string', FORWARDING_TIME),
    keys(new RegExp(`^sessions:taken-over:${ID_PATTERN}$`), 'string', 'any'),
    keys(/^expirations$/, 'zset', 'never', {
      items: ({ key, partition }, minutes) => scripts.find('verify-minutes', [key], partition.prefix, ...minutes),
    }),
    keys(/^expirations:(\d+)$/, 'set', 'never', {
      items: ({ partition, part: minute }, all) => members(partition, minute, all),
    }),
    keys(/^ends$/, 'zset', 'never', {
      items: ({ partition }, ids) =>
        members(
          partition,
          undefined,
          ids.map((id) => partition.memberOf(id)),
        ),
    }),
    keys(/^index:[^]+:[\w-]{43}$/, 'zset', 'never', {
      items: ({ key, partition }, ids) => scripts.find('verify-index', [key], partition.prefix, ...ids),
    }),
    keys(/^revoked:[^]+:[\w-]{43}$/, 'string', 400 * DAY),
    keys(/^marks:[\w-]{43}$/, 'string', 7 * DAY),
    keys(/^ledger:[\w-]{43}$/, 'hash', 7 * DAY),
    keys(/^epoch$/, 'hash', 'never'),
  ];
}

/** `moves` moves misplaced ones; undefined where nothing is mended. */
export function deadlineKinds(
  client: Redis,
  partitions: DeadlinePartitions,
  scripts: VerificationScripts,
  moves: DeadlineScripts | undefined,
): KeyKind<DeadlineKeys>[] {
  const mostBytes = partitions.shareOf(DEAD_LETTER_BYTES);
  const look = ({ names, prefix }: DeadlineKeys, members: readonly string[], place: 'all' | 'misplaced') =>
    members.length === 0 ? [] : scripts.find('verify-deadlines', [names], prefix, FIRED_KNOWN_FOR, place, ...members);
  const deadlines = async (partition: DeadlineKeys, members: readonly string[]): Promise<Problem[]> => {
    const elsewhere = await misplacedParts(client, partitions, partition, members);
    const own = members.filter((member) => !elsewhere.includes(member));
    const problems = await look(partition, own, 'all');
    const misplaced = await look(partition, elsewhere, 'misplaced');
    for (const { rule, what } of moves ? misplaced : []) {
      if (rule === 'deadline-misplaced') await moveDeadline(client, moves!, partition, partitions.of(what), what);
    }
    return [...problems, ...misplaced];
  };
  return [
    keys(/^deadlines:([\da-f]{40})$/, 'hash', 'any', { verify: deadlines }),
    keys(/^due$/, 'zset', 'never'),
    keys(/^due:([^]+)$/, 'zset', 'never', {
      items: ({ key, partition: { names, deadLetters, prefix }, part: name }, members) =>
        scripts.find('verify-due', [key, names, deadLetters], prefix, name, mostBytes, ...members),
    }),
  ];
}

const FIELDS = ['name', 'key', 'id', 'due', 'at', 'traceparent', 'data', 'dataKey'] as const;

/** It is there before it leaves, so that no interruption loses it. One that waits there under its key stays. */
async function moveDeadline(
  client: Redis,
  scripts: DeadlineScripts,
  from: DeadlineKeys,
  to: DeadlineKeys,
  member: string,
): Promise<void> {
  const [name, key, id, due, at, traceparent, text, dataKey] = await client.hmget(from.deadline(member), ...FIELDS);
  // It was cancelled meanwhile.
  if (name == null || key == null || id == null || due == null) return;
  const data = { text: text ?? undefined, dataKey: dataKey ?? undefined };
  const asItWas = { traceparent: traceparent ?? undefined, scheduledAt: at == null ? undefined : Number(at) };
  const deadline = { member, key, id, due: { at: Number(due) }, ifExists: 'keep', ...asItWas, data } as const;
  await scripts.schedule(to, name, [deadline], Number.MAX_SAFE_INTEGER);
  await scripts.cancel(from, name, member);
}

/** What belongs to another partition. None during a move to another number of them, where it may stand in either. */
async function misplacedParts<Keys extends PartitionKeys>(
  client: Redis,
  partitions: Partitions<Keys>,
  partition: Keys,
  parts: readonly string[],
): Promise<readonly string[]> {
  const misplaced = parts.filter((part) => partitions.of(part) !== partition);
  if (misplaced.length === 0) return misplaced;
  // After they were found: whatever has begun since has not put them there.
  const recorded = await client.hget(partitions.meta, 'partitions');
  return recorded === `${partitions.count}` ? misplaced : [];
}
