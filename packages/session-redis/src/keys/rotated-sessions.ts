import type { RequestConnection } from '@nest-session/redis-events/internal';
import type { SessionKeys } from './session-keys.js';
import type { SessionPartitions } from './session-partitions.js';

// Chains are short, and few sessions are rotated at each step. The limit stops a planted circle.
const MOST_MARKS = 15;

/** Whether the session of any of these former ids goes on, as scripts/library/goes-on.lua decides it in a partition. */
export async function anyGoesOn(
  connection: RequestConnection,
  partitions: SessionPartitions,
  formerIds: readonly string[],
): Promise<boolean> {
  return (await Promise.all(formerIds.map((id) => goesOn(connection, partitions.of(id), id)))).includes(true);
}

async function goesOn(connection: RequestConnection, keys: SessionKeys, formerId: string): Promise<boolean> {
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

/** How sessions are loaded, and where their forwarding marks are. */
interface ListedSource<Loaded> {
  readonly connection: Pick<RequestConnection, 'run'>;
  readonly grouped: (ids: readonly string[]) => readonly (readonly [keys: SessionKeys, ids: readonly string[]])[];
  readonly load: (ids: readonly string[]) => Promise<readonly Loaded[]>;
}

/** The live sessions that an index lists, by its ids. One load, unless some were rotated since it was read. */
export async function loadListed<Loaded extends { readonly id: string }>(
  ids: readonly string[],
  { connection, grouped, load }: ListedSource<Loaded>,
): Promise<Map<string, Loaded>> {
  const found = new Map<string, Loaded>();
  // By the ids that the sessions have by now.
  let listed = new Map(ids.map((id) => [id, id]));
  for (let rotations = 0; rotations <= MOST_MARKS; rotations++) {
    for (const session of await load([...listed.keys()])) {
      found.set(listed.get(session.id)!, session);
      listed.delete(session.id);
    }
    if (listed.size === 0) break;
    const later = await Promise.all(grouped([...listed.keys()]).map(([keys, its]) => laterIds(connection, keys, its)));
    listed = new Map(later.flat().map(([id, laterId]) => [laterId, listed.get(id)!]));
    if (listed.size === 0) break;
  }
  return found;
}

/** The ids to which forwarding marks lead, by the ids that were rotated. */
async function laterIds(
  connection: Pick<RequestConnection, 'run'>,
  keys: SessionKeys,
  ids: readonly string[],
): Promise<[id: string, laterId: string][]> {
  const marks = await connection.run((client) => client.mget(ids.map((id) => keys.forwardingMark(id))), keys.prefix);
  return ids.flatMap((id, i) => {
    const later = /^(?:(?:closed|left):)?(\S+)/.exec(marks[i] ?? '')?.[1];
    return later === undefined ? [] : [[id, later]];
  });
}
