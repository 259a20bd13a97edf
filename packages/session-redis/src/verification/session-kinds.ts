import type { Redis } from 'ioredis';
import type { SessionKeys } from '../keys/session-keys.js';
import type { SessionScripts } from '../scripts/session/session.scripts.js';
import type { MendingRules, Rule, VerificationScripts } from '../scripts/verification/verification.scripts.js';
import { DAY, type KeyKind, lookAt, MINUTE, withoutValues } from './key-kind.js';

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
  readonly scripts: VerificationScripts;
  readonly claims: Pick<SessionScripts, 'claimExpired'> | undefined;
  readonly rules: MendingRules;
}

/** The keys of sessions, of their ends and of their indexes. */
export function sessionKinds({ client, scripts, claims, rules }: SessionVerifier): KeyKind<SessionKeys>[] {
  const sessions = (partition: SessionKeys, ids: readonly string[]) => scripts.sessions(partition, ids, rules);
  const members = async (partition: SessionKeys, minute: string | undefined, all: readonly string[]) => {
    const problems = await scripts.members(partition, minute, all);
    const wrong = problems.filter(({ rule }) => OF_MEMBERS.includes(rule)).map(({ what }) => what);
    if (wrong.length > 0) await claims?.claimExpired(partition, wrong, minute ?? IN_SET);
    return problems;
  };
  return [
    { name: /^sessions:([\w-]{22,})$/, type: 'hash', life: 'any', verify: sessions },
    {
      name: /^sessions:expires:([\w-]{22,})$/,
      type: 'string',
      life: 'any',
      // What its session lacks is found with the session hash, if there is one.
      verify: (partition, ids) => scripts.shadows(partition, ids, rules),
    },
    { name: /^sessions:forwarded:[\w-]{22,}$/, type: 'string', life: MINUTE },
    { name: /^sessions:taken-over:[\w-]{22,}$/, type: 'string', life: 'any' },
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
