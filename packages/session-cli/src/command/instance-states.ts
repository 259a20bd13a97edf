import { ALIVE, nodeWith } from '@nest-session/redis-events/internal';
import type { OpenStore } from './store-access.js';

/** The instances of a namespace, by their names: host, process and a UUID. */
export interface InstanceStates {
  readonly alive: readonly string[];
  /** Those that were killed within a day, or do not reach Redis. */
  readonly silent: readonly string[];
}

export async function instanceStates({ connection, partitions: { instances } }: OpenStore): Promise<InstanceStates> {
  const [time, rows] = await connection.run(
    (client) => Promise.all([nodeWith(client, instances).time(), client.zrange(instances, '0', '-1', 'WITHSCORES')]),
    instances,
  );
  const since = Number(time[0]) * 1000 - ALIVE;
  const names = rows.filter((_, i) => i % 2 === 0);
  const isAlive = (name: string) => Number(rows[2 * names.indexOf(name) + 1]) >= since;
  return { alive: names.filter(isAlive), silent: names.filter((name) => !isAlive(name)) };
}
