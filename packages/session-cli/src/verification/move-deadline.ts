import type { Redis } from 'ioredis';
import type { DeadlineKeys, DeadlineScripts } from '@nest-session/deadlines/redis/internal';

const FIELDS = ['name', 'key', 'id', 'due', 'at', 'traceparent', 'data', 'dataKey'] as const;

/** The partitions between which a deadline moves. */
export interface DeadlineMove {
  readonly from: DeadlineKeys;
  readonly to: DeadlineKeys;
}

/**
 * Moves a waiting deadline to another partition, as it is. It is there before it leaves, so it is not lost when this is
 * interrupted. One that waits there under its key stays, as a key has one deadline.
 */
export async function moveDeadline(
  client: Redis,
  scripts: Pick<DeadlineScripts, 'schedule' | 'cancel'>,
  { from, to }: DeadlineMove,
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
