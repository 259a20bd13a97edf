import type { Redis } from 'ioredis';
import type { Partitions } from '../partitions/partitions.js';
import type { Connection } from './check-store.js';
import { nodeWith } from './node-with.js';

/** What a node says of its memory. */
export interface NodeMemory {
  /** Its `maxmemory-policy`. */
  readonly policy: string;
  /** Whether it refuses every command that takes memory. */
  readonly isFull: boolean;
}

/**
 * Asks the nodes of all partitions, each once, by INFO, because CONFIG is forbidden more often. A node that does not
 * say in time is left out. Never rejects.
 */
export async function nodeMemory(
  connection: Connection,
  { all }: Pick<Partitions, 'all'>,
): Promise<ReadonlyMap<Redis, NodeMemory>> {
  const asked = new Map<Redis, Promise<NodeMemory | undefined>>();
  const found = new Map<Redis, NodeMemory>();
  const ask = async (client: Redis, key: string) => {
    const node = nodeWith(client, key);
    const reply = asked.get(node) ?? memoryOf(node);
    asked.set(node, reply);
    const memory = await reply;
    if (memory) found.set(node, memory);
  };
  const keys = all.map(({ prefix }) => prefix);
  await Promise.all(keys.map((key) => connection.run((client) => ask(client, key), key).catch(() => undefined)));
  return found;
}

async function memoryOf(node: Redis): Promise<NodeMemory | undefined> {
  const info = await node.info('memory');
  const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1];
  const bytes = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
  const limit = bytes('maxmemory');
  // As Redis compares it. Under another policy, it evicts.
  const isOver = limit > 0 && bytes('used_memory') - bytes('mem_not_counted_for_evict') > limit;
  return policy === undefined ? undefined : { policy, isFull: isOver && policy === 'noeviction' };
}
