import type { Redis } from 'ioredis';
import type { OpenStore } from './store-access.js';

/** A server that has partitions of a store. */
export interface StoreNode {
  readonly address: string;
  /** A partition that it has: commands without keys reach it by that. */
  readonly key: string;
}

/** The servers of a store, each once. With one, the address says nothing. */
export async function nodesOf({ connection, partitions }: OpenStore): Promise<StoreNode[]> {
  const nodes = new Map<string, StoreNode>();
  for (const { prefix } of partitions.all) {
    const address = await connection.run(async (client) => serverOf(client), prefix);
    if (!nodes.has(address)) nodes.set(address, { address, key: prefix });
  }
  return [...nodes.values()];
}

/** Where the server of a client is. */
export function serverOf({ options: { host, port, sentinels, name }, stream }: Redis): string {
  if (!sentinels) return `${host}:${port}`;
  // Behind Sentinels, ioredis leaves its defaults in the options.
  const { remoteAddress, remotePort } = stream;
  return remoteAddress === undefined ? `master ${name}` : `${remoteAddress}:${remotePort}`;
}
