import type { Redis } from 'ioredis';
import type { DeadlineKeys } from '../keys/deadline-keys.js';
import type { VerificationScripts } from '../scripts/verification/verification.scripts.js';
import { type KeyKind, lookAt, withoutValues } from './key-kind.js';

const PER_CALL = 50;

/** The keys of deadlines. `mostBytes`: of the dead letters of a partition. */
export function deadlineKinds(client: Redis, scripts: VerificationScripts, mostBytes: number): KeyKind<DeadlineKeys>[] {
  return [
    {
      name: /^deadlines:([\da-f]{40})$/,
      type: 'hash',
      life: 'any',
      verify: (partition, members) => scripts.deadlines(partition, members),
    },
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
