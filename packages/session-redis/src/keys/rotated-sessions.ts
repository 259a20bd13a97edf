import type { RequestConnection } from '@nest-session/redis-events/internal';
import type { SessionKeys } from './session-keys.js';
import { batchesOf } from './scan-pages.js';
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

// How often a look-up reads an index while its sessions end.
const MOST_READS = 5;
// All at once, many sessions would take longer than a call may, and hold up requests.
const LOADED_AT_ONCE = 500;

/**
 * The live sessions that an index lists. It is read again where some are gone, which may have got an id that comes next
 * meanwhile. `isOne`: a session may have got another value since then. `ended`: is told of ids that never come back.
 */
export async function lookUpListed<Loaded extends { readonly id: string }>(
  read: () => Promise<readonly string[]>,
  source: ListedSource<Loaded>,
  isOne: (session: Loaded) => boolean,
  ended: (ids: readonly string[]) => Promise<unknown> = async () => undefined,
): Promise<Loaded[]> {
  const found = new Map<string, Loaded | undefined>();
  let ids: readonly string[] = [];
  for (let reads = 1; reads <= MOST_READS; reads++) {
    ids = await read();
    const unread = ids.filter((id) => !found.has(id));
    for (const some of batchesOf(unread, LOADED_AT_ONCE)) {
      const loaded = await loadListed(some, source);
      for (const id of some) found.set(id, loaded.get(id));
    }
    const gone = unread.filter((id) => !found.get(id));
    if (gone.length === 0) break;
    await ended(gone);
  }
  const sessions = ids.flatMap((id) => found.get(id) ?? []).filter(isOne);
  return [...new Map(sessions.map((session) => [session.id, session])).values()];
}

/** By the ids of the index. One load, unless some were rotated since it was read. */
async function loadListed<Loaded extends { readonly id: string }>(
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
