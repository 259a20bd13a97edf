import type { DeadlineKeys, DeadlinePartitions, DeadlineScripts } from '@nest-session/deadlines/redis/internal';
import { DEAD_LETTER_BYTES } from '@nest-session/redis-events/internal';
import type { Redis } from 'ioredis';
import type { Problem, VerificationScripts } from '../scripts/verification/verification.scripts.js';
import { type KeyKind, keys, misplacedParts } from './key-kind.js';

/**
 * The keys of deadlines.
 * @param moves moves misplaced ones; undefined where nothing is mended
 */
export function deadlineKinds(
  client: Redis,
  partitions: DeadlinePartitions,
  scripts: VerificationScripts,
  moves: DeadlineScripts | undefined,
): KeyKind<DeadlineKeys>[] {
  const mostBytes = partitions.shareOf(DEAD_LETTER_BYTES);
  const deadlines = async (partition: DeadlineKeys, members: readonly string[]): Promise<Problem[]> => {
    const elsewhere = await misplacedParts(client, partitions, partition, members);
    const own = members.filter((member) => !elsewhere.includes(member));
    const problems = own.length > 0 ? await scripts.deadlines(partition, own) : [];
    const misplaced = elsewhere.length > 0 ? await scripts.deadlines(partition, elsewhere, 'misplaced') : [];
    for (const { rule, what } of moves ? misplaced : []) {
      if (rule === 'deadline-misplaced') await moveDeadline(client, moves!, partition, partitions.of(what), what);
    }
    return [...problems, ...misplaced];
  };
  return [
    keys(/^deadlines:([\da-f]{40})$/, 'hash', 'any', { verify: deadlines }),
    keys(/^due$/, 'zset', 'never'),
    keys(/^due:([^]+)$/, 'zset', 'never', {
      items: ({ partition, part: name }, members) => scripts.due(partition, name, members, mostBytes),
    }),
  ];
}

const FIELDS = ['name', 'key', 'id', 'due', 'at', 'traceparent', 'data', 'dataKey'] as const;

/**
 * Moves a waiting deadline to another partition, as it is. It is there before it leaves, so it is not lost when this is
 * interrupted. One that waits there under its key stays, as a key has one deadline.
 */
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
