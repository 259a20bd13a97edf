import { shownText } from '@nest-session/core/internal';
import type { Redis } from 'ioredis';
import { logger } from '../logging/redis-session.logger.js';
import { type Partitions, shownContent } from '../partitions/partitions.js';
import type { Connection } from './check-store.js';
import { nodeMemory } from './node-memory.js';

/** Warns when Redis may evict what a namespace holds. No event comes of it: nothing is left to record it. */
export class EvictionCheck {
  /** By address: the policies that the log has warned of. */
  readonly #evicting = new Map<string, string>();

  constructor(private readonly partitions: Pick<Partitions, 'all' | 'owner'>) {}

  /** Warns once of each policy of a node. A node whose policy cannot be found out is left as it was. Never rejects. */
  async look(connection: Connection): Promise<void> {
    const found = await nodeMemory(connection, this.partitions);
    const isNews = [...found].map(([node, { policy }]) => this.#learn(addressOf(node), policy)).includes(true);
    if (!isNews) return;
    const several = found.size > 1 || this.#evicting.size > 1;
    const policies = [...this.#evicting].map(([address, policy]) => policy + (several ? ` on ${address}` : ''));
    logger.warn(
      `Redis may evict ${lossOf(this.partitions.owner.holds)}: its maxmemory-policy is ${policies.join(', ')}. ` +
        'Set it to noeviction',
    );
  }

  /** Whether the log has not warned of that yet. */
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

/** What a namespace loses by an eviction, and the consequence. */
export function lossOf(holds: string): string {
  return `${shownContent(holds)}, ${CONSEQUENCES[holds] ?? 'which then end without an event'}`;
}

function addressOf({ options: { host, port } }: Redis): string {
  return `${host}:${port}`;
}
