import { FORWARDING_TIME } from '@nest-session/core/internal';
import type { Redis } from 'ioredis';
import {
  ID_PATTERN,
  type SessionKeys,
  type SessionPartitions,
  type SessionScripts,
} from '@nest-session/redis/internal';
import type { MendingRules, Problem, Rule, VerificationScripts } from '../scripts/verification/verification.scripts.js';
import { DAY, type KeyKind, lookAt, withoutValues } from './key-kind.js';
import { misplacedParts } from './misplaced-parts.js';

const PER_CALL = 50;

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

/** What looks at sessions; `claims`: what mends members, undefined where nothing is mended. */
export interface SessionVerifier {
  readonly client: Redis;
  readonly partitions: SessionPartitions;
  readonly scripts: VerificationScripts;
  readonly claims: Pick<SessionScripts, 'claimExpired'> | undefined;
  readonly rules: MendingRules;
}

/** The keys of sessions, of their ends and of their indexes. */
export function sessionKinds(verifier: SessionVerifier): KeyKind<SessionKeys>[] {
  const { client, scripts, claims, rules } = verifier;
  const sessions = async (partition: SessionKeys, ids: readonly string[]): Promise<Problem[]> => {
    const [own, misplaced, copies] = await byPlace(verifier, partition, ids);
    return [
      ...(own.length > 0 ? await scripts.sessions(partition, own, rules) : []),
      ...(misplaced.length > 0 ? await scripts.sessions(partition, misplaced, rules, 'misplaced') : []),
      ...(copies.length > 0 ? await scripts.sessions(partition, copies, rules, 'copies') : []),
    ];
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
      verify: (partition, ids) => scripts.shadows(partition, ids, rules),
    },
    { name: new RegExp(`^sessions:forwarded:${ID_PATTERN}$`), type: 'string', life: FORWARDING_TIME },
    { name: new RegExp(`^sessions:taken-over:${ID_PATTERN}$`), type: 'string', life: 'any' },
    {
      name: /^expirations$/,
      type: 'zset',
      life: 'never',
      contents: ({ key, partition }) =>
        lookAt(
          (cursor) => withoutValues(client.zscan(key, cursor, 'COUNT', PER_CALL)),
          (minutes) => scripts.minutes(partition, minutes),
        ),
    },
    {
      name: /^expirations:(\d+)$/,
      type: 'set',
      life: 'never',
      contents: ({ key, partition, part }) =>
        lookAt(
          (cursor) => client.sscan(key, cursor, 'COUNT', PER_CALL),
          (all) => members(partition, part, all),
        ),
    },
    {
      name: /^ends$/,
      type: 'zset',
      life: 'never',
      contents: ({ key, partition }) =>
        lookAt(
          (cursor) => withoutValues(client.zscan(key, cursor, 'COUNT', PER_CALL)),
          (ids) =>
            members(
              partition,
              undefined,
              ids.map((id) => partition.memberOf(id)),
            ),
        ),
    },
    {
      name: /^index:[^]+:[\w-]{43}$/,
      type: 'zset',
      life: 'never',
      contents: ({ key, partition }) =>
        lookAt(
          (cursor) => withoutValues(client.zscan(key, cursor, 'COUNT', PER_CALL)),
          (ids) => scripts.index(key, partition, ids),
        ),
    },
    { name: /^revoked:[^]+:[\w-]{43}$/, type: 'string', life: 400 * DAY },
    { name: /^ledger:[\w-]{43}$/, type: 'hash', life: 7 * DAY },
    { name: /^epoch$/, type: 'hash', life: 'never' },
  ];
}

/** The ids that belong to the partition, those that belong to another one, and those that are there as well. */
async function byPlace(
  { client, partitions }: SessionVerifier,
  partition: SessionKeys,
  ids: readonly string[],
): Promise<[own: string[], misplaced: string[], copies: string[]]> {
  const elsewhere = await misplacedParts(client, partitions, partition, ids);
  const found = await Promise.all(elsewhere.map((id) => client.exists(partitions.of(id).session(id))));
  return [
    ids.filter((id) => !elsewhere.includes(id)),
    elsewhere.filter((_, i) => found[i] === 0),
    elsewhere.filter((_, i) => found[i] === 1),
  ];
}
