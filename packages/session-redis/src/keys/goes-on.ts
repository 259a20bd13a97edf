import type { RequestConnection } from '@nest-session/redis-events/internal';
import type { SessionPartitions } from './session-partitions.js';

// A chain of marks is short. The limit stops a planted circle.
const MOST_MARKS = 15;

/**
 * Whether the session of a former id goes on, as scripts/library/goes-on.lua decides it for the ids of one partition.
 */
export async function goesOn(
  connection: RequestConnection,
  partitions: SessionPartitions,
  formerId: string,
): Promise<boolean> {
  const keys = partitions.of(formerId);
  for (let id = formerId, marks = 0; marks < MOST_MARKS; marks++) {
    const key = keys.forwardingMark(id);
    const mark = await connection.run((client) => client.get(key), key);
    if (mark === null) return false;
    const [, left] = /^left:(.+)/.exec(mark) ?? [];
    if (left === undefined) return true;
    id = left;
  }
  return true;
}
