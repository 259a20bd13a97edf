import { shownText } from '@nest-session/core/internal';
import type { Redis } from 'ioredis';
import { logger } from '../logging/failure.log.js';
import { type Partitions, shownContent } from '../partitions/partitions.js';
import type { Connection } from './store-format.js';
import { nodeWith } from '../connection/node-with.js';
import { infoOf } from '../connection/shown-server.js';

/** No event comes of an eviction: nothing is left to record it. */
export class EvictionCheck {
  /** By address: the policies that the log has warned of. */
  readonly #evicting = new Map<string, string>();

  constructor(private readonly partitions: Pick<Partitions, 'all' | 'owner'>) {}

  /** Warns once of each policy of a node. A node whose policy cannot be found out is left as it was. Never rejects. */
  async look(connection: Connection): Promise<void> {
    const found = await nodeMemory(connection, this.partitions);
    const learned = [...found].map(([{ options }, { policy }]) =>
      this.#learn(`${options.host}:${options.port}`, policy),
    );
    if (!learned.includes(true)) return;
    const several = found.size > 1 || this.#evicting.size > 1;
    const policies = [...this.#evicting].map(([address, policy]) => policy + (several ? ` on ${address}` : ''));
    logger.warn(
      `Redis may evict ${lossOf(this.partitions.owner.holds)}: its maxmemory-policy is ${policies.join(', ')}. ` +
        'Set it to noeviction',
    );
  }

  #learn(address: string, policy: string): boolean {
    const isNews = policy !== 'noeviction' && this.#evicting.get(address) !== shownText(policy);
    if (policy === 'noeviction') this.#evicting.delete(address);
    else this.#evicting.set(address, shownText(policy));
    return isNews;
  }
}

const CONSEQUENCES: Readonly<Record<string, string>> = {
  deadlines: 'which then never come',
  events: 'which then reach no group',
};

export function lossOf(holds: string): string {
  return `${shownContent(holds)}, ${CONSEQUENCES[holds] ?? 'which then end without an event'}`;
}

export interface NodeMemory {
  readonly policy: string;
  /** Whether it refuses every command that takes memory. */
  readonly isFull: boolean;
}

/**
 * Asks each node by INFO, because CONFIG is forbidden more often. One that does not reply is left out. Never rejects.
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
  const info = infoOf(await node.info('memory'));
  const policy = info.get('maxmemory_policy');
  const bytes = (name: string) => Number(info.get(name) ?? 0);
  const limit = bytes('maxmemory');
  // As Redis compares it. Under another policy, it evicts.
  const isOver = limit > 0 && bytes('used_memory') - bytes('mem_not_counted_for_evict') > limit;
  return policy === undefined ? undefined : { policy, isFull: isOver && policy === 'noeviction' };
}
