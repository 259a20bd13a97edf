import slotOf from 'cluster-key-slot';
import type { Cluster, Redis } from 'ioredis';
import { groupedBy, type PartitionKeys } from '../partitions/partitions.js';

/** A connection for commands without keys, such as SCAN, to the node that has a key. @throws Error while none has */
export function nodeWith(client: Redis | Cluster, key: string): Redis {
  if (!isCluster(client)) return client;
  const owner = addressWith(client, key);
  const node = client.nodes('master').find(({ options: { host, port } }) => `${host}:${port}` === owner);
  if (!node) throw new Error('No primary has this slot of the Cluster at the moment');
  return node;
}

/** The same to the node of another connection. @throws Error while that is no primary of the Cluster */
export function nodeLike(client: Redis | Cluster, { options: { host, port } }: Redis): Redis {
  if (!isCluster(client)) return client;
  const node = client.nodes('master').find(({ options }) => options.host === host && options.port === port);
  if (!node) throw new Error(`${host}:${port} is no primary of the Cluster at the moment`);
  return node;
}

/** The same for all keys of one server. Undefined while no primary has the key. */
export function addressWith(client: Redis | Cluster, key: string): string | undefined {
  return isCluster(client) ? client.slots[slotOf(key)]?.[0] : '';
}

export function partitionsByNode<Keys extends PartitionKeys>(
  client: Redis | Cluster,
  partitions: readonly Keys[],
): ReadonlyMap<string | undefined, readonly Keys[]> {
  return groupedBy(partitions, ({ prefix }) => addressWith(client, prefix));
}

/** Not `instanceof`: the application may have another copy of ioredis. */
export function isCluster(client: Redis | Cluster): client is Cluster {
  return client.isCluster;
}

/** The clock of Redis, in epoch milliseconds. */
export async function redisTime(client: Pick<Redis, 'time'>): Promise<number> {
  const [seconds, microseconds] = await client.time();
  return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
}
