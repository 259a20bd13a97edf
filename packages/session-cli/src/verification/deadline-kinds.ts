import type { Redis } from 'ioredis';
import { DEAD_LETTER_BYTES } from '@nest-session/redis-events/internal';
import type { DeadlineKeys, DeadlinePartitions, DeadlineScripts } from '@nest-session/deadlines/redis/internal';
import type { Problem, VerificationScripts } from '../scripts/verification/verification.scripts.js';
import { type KeyKind, lookAt, withoutValues } from './key-kind.js';
import { misplacedParts } from './misplaced-parts.js';
import { moveDeadline } from './move-deadline.js';

const PER_CALL = 50;

/** What looks at deadlines; `moves`: what moves misplaced ones, undefined where nothing is mended. */
export interface DeadlineVerifier {
  readonly client: Redis;
  readonly partitions: DeadlinePartitions;
  readonly scripts: VerificationScripts;
  readonly moves: Pick<DeadlineScripts, 'schedule' | 'cancel'> | undefined;
}

/** The keys of deadlines. */
export function deadlineKinds({ client, partitions, scripts, moves }: DeadlineVerifier): KeyKind<DeadlineKeys>[] {
  const mostBytes = partitions.shareOf(DEAD_LETTER_BYTES);
  const misplaced = async (from: DeadlineKeys, members: readonly string[]): Promise<Problem[]> => {
    const problems = await scripts.deadlines(from, members, 'misplaced');
    if (!moves) return problems;
    for (const { rule, what } of problems) {
      if (rule === 'deadline-misplaced') await moveDeadline(client, moves, { from, to: partitions.of(what) }, what);
    }
    return problems;
  };
  const deadlines = async (partition: DeadlineKeys, members: readonly string[]): Promise<Problem[]> => {
    const elsewhere = await misplacedParts(client, partitions, partition, members);
    const own = members.filter((member) => !elsewhere.includes(member));
    return [
      ...(own.length > 0 ? await scripts.deadlines(partition, own) : []),
      ...(elsewhere.length > 0 ? await misplaced(partition, elsewhere) : []),
    ];
  };
  return [
    { name: /^deadlines:([\da-f]{40})$/, type: 'hash', life: 'any', verify: deadlines },
    { name: /^due$/, type: 'zset', life: 'never' },
    {
      name: /^due:([^]+)$/,
      type: 'zset',
      life: 'never',
      contents: ({ key, partition, part }) =>
        lookAt(
          (cursor) => withoutValues(client.zscan(key, cursor, 'COUNT', PER_CALL)),
          (members) => scripts.due(partition, part, members, mostBytes),
        ),
    },
  ];
}
