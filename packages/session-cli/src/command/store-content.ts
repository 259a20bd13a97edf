import { DeadlineScripts, waitingDeadlines } from '@nest-session/deadlines/redis/internal';
import { ALIVE, nodeWith, type PartitionKeys, scriptsOn } from '@nest-session/redis-events/internal';
import { countSessions, SessionPartitions } from '@nest-session/redis/internal';
import { type OpenStore, sessionScriptsOf } from './store-access.js';

interface Content {
  /** Sessions that have not ended, or whose end nobody has noticed. */
  readonly sessions?: number;
  /** How long ago the oldest end or deadline was due, in milliseconds. */
  readonly overdue: number;
  readonly deadlines?: readonly { readonly name: string; readonly count: number; readonly overdue: number }[];
}

export async function contentOf({ connection, partitions, options }: OpenStore): Promise<Content> {
  if (partitions instanceof SessionPartitions)
    return countSessions(connection, sessionScriptsOf({ partitions, options }), partitions);
  const scripts = scriptsOn((client) => new DeadlineScripts(client));
  const deadlines = await waitingDeadlines(connection, scripts, partitions);
  return { overdue: Math.max(0, ...deadlines.map(({ overdue }) => overdue)), deadlines };
}

export async function entriesIn(
  { connection, partitions }: OpenStore,
  stream: 'events' | 'deadLetters',
): Promise<number> {
  const all: readonly PartitionKeys[] = partitions.all;
  const counts = await connection.runInAll({ all }, (client, keys) => client.xlen(keys[stream]));
  return counts.reduce((sum, count) => sum + count, 0);
}

/** The names of instances: host, process and a UUID. `silent`: they were killed within a day, or do not reach Redis. */
export async function instanceStates({ connection, partitions: { instances } }: OpenStore) {
  const [time, rows] = await connection.run(
    (client) => Promise.all([nodeWith(client, instances).time(), client.zrange(instances, '0', '-1', 'WITHSCORES')]),
    instances,
  );
  const since = Number(time[0]) * 1000 - ALIVE;
  const names = rows.filter((_, i) => i % 2 === 0);
  const isAlive = (name: string) => Number(rows[2 * names.indexOf(name) + 1]) >= since;
  return { alive: names.filter(isAlive), silent: names.filter((name) => !isAlive(name)) };
}
