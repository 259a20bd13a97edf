import { FORWARDING_TIME } from '@nest-session/core/internal';
import {
  ID_PATTERN,
  type SessionKeys,
  type SessionPartitions,
  type SessionScripts,
} from '@nest-session/redis/internal';
import type { Redis } from 'ioredis';
import type { MendingRules, Problem, VerificationScripts } from '../scripts/verification/verification.scripts.js';
import { DAY, type KeyKind, keys, misplacedParts } from './key-kind.js';
import type { Rule } from './rules.js';

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

/**
 * The keys of sessions, of their ends and of their indexes.
 * @param claims mends members; undefined where nothing is mended
 */
export function sessionKinds(
  client: Redis,
  partitions: SessionPartitions,
  scripts: VerificationScripts,
  claims: SessionScripts | undefined,
  rules: MendingRules,
): KeyKind<SessionKeys>[] {
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
      if (places[place].length > 0) problems.push(...(await scripts.sessions(partition, places[place], rules, place)));
    }
    return problems;
  };
  const members = async (partition: SessionKeys, minute: string | undefined, all: readonly string[]) => {
    const problems = await scripts.members(partition, minute, all);
    const wrong = problems.filter(({ rule }) => OF_MEMBERS.includes(rule)).map(({ what }) => what);
    if (wrong.length > 0) await claims?.claimExpired(partition, wrong, minute ?? IN_SET);
    return problems;
  };
  return [
    keys(new RegExp(`^sessions:(${ID_PATTERN})$`), 'hash', 'any', { verify: sessions }),
    // What its session lacks is found with the session hash, if there is one.
    keys(new RegExp(`^sessions:expires:(${ID_PATTERN})$`), 'string', 'any', {
      verify: (partition, ids) => scripts.sessions(partition, ids, rules, 'hash'),
    }),
    keys(new RegExp(`^sessions:forwarded:${ID_PATTERN}$`), 'string', FORWARDING_TIME),
    keys(new RegExp(`^sessions:taken-over:${ID_PATTERN}$`), 'string', 'any'),
    keys(/^expirations$/, 'zset', 'never', { items: ({ partition }, minutes) => scripts.minutes(partition, minutes) }),
    keys(/^expirations:(\d+)$/, 'set', 'never', {
      items: ({ partition, part: minute }, all) => members(partition, minute, all),
    }),
    keys(/^ends$/, 'zset', 'never', {
      items: ({ partition }, ids) => {
        const all = ids.map((id) => partition.memberOf(id));
        return members(partition, undefined, all);
      },
    }),
    keys(/^index:[^]+:[\w-]{43}$/, 'zset', 'never', {
      items: ({ key, partition }, ids) => scripts.index(key, partition, ids),
    }),
    keys(/^revoked:[^]+:[\w-]{43}$/, 'string', 400 * DAY),
    keys(/^ledger:[\w-]{43}$/, 'hash', 7 * DAY),
    keys(/^epoch$/, 'hash', 'never'),
  ];
}
