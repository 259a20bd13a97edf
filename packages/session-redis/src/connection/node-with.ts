import slotOf from 'cluster-key-slot';
import type { Cluster, Redis } from 'ioredis';

/**
 * A connection for commands without keys, such as SCAN, to the node that has a key. Of the client of a Cluster it is the one to
 * the primary.
 * @throws Error while no primary has the key
 */
export function nodeWith(client: Redis | Cluster, key: string): Redis {
  if (!isCluster(client)) return client;
  const [owner] = client.slots[slotOf(key)] ?? [];
  const node = client.nodes('master').find(({ options: { host, port } }) => `${host}:${port}` === owner);
  if (!node) throw new Error('No primary has this slot of the Cluster at the moment');
  return node;
}

/** Not `instanceof`: the application may have another copy of ioredis. */
export function isCluster(client: Redis | Cluster): client is Cluster {
  return client.isCluster;
}
