import { FORWARDING_TIME } from '@nest-session/core/internal';
import {
  ID_PATTERN,
  type SessionKeys,
  type SessionPartitions,
  type SessionScripts,
} from '@nest-session/redis/internal';
import type { Redis } from 'ioredis';
import type { MendingRules, Problem, Rule, VerificationScripts } from '../scripts/verification/verification.scripts.js';
import { DAY, type KeyKind, misplacedParts } from './key-kind.js';

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
    { name: new RegExp(`^sessions:(${ID_PATTERN})$`), type: 'hash', life: 'any', verify: sessions },
    {
      name: new RegExp(`^sessions:expires:(${ID_PATTERN})$`),
      type: 'string',
      life: 'any',
      // What its session lacks is found with the session hash, if there is one.
      verify: (partition, ids) => scripts.sessions(partition, ids, rules, 'hash'),
    },
    { name: new RegExp(`^sessions:forwarded:${ID_PATTERN}$`), type: 'string', life: FORWARDING_TIME },
    { name: new RegExp(`^sessions:taken-over:${ID_PATTERN}$`), type: 'string', life: 'any' },
    {
      name: /^expirations$/,
      type: 'zset',
      life: 'never',
      items: ({ partition }, minutes) => scripts.minutes(partition, minutes),
    },
    {
      name: /^expirations:(\d+)$/,
      type: 'set',
      life: 'never',
      items: ({ partition, part: minute }, all) => members(partition, minute, all),
    },
    {
      name: /^ends$/,
      type: 'zset',
      life: 'never',
      items: ({ partition }, ids) => {
        const all = ids.map((id) => partition.memberOf(id));
        return members(partition, undefined, all);
      },
    },
    {
      name: /^index:[^]+:[\w-]{43}$/,
      type: 'zset',
      life: 'never',
      items: ({ key, partition }, ids) => scripts.index(key, partition, ids),
    },
    { name: /^revoked:[^]+:[\w-]{43}$/, type: 'string', life: 400 * DAY },
    { name: /^ledger:[\w-]{43}$/, type: 'hash', life: 7 * DAY },
    { name: /^epoch$/, type: 'hash', life: 'never' },
  ];
}
