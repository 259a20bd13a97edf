import { shownText } from '@nest-session/core/internal';
import type { Redis } from 'ioredis';
import { logger } from '../logging/redis-session.logger.js';
import type { Partitions } from '../partitions/partitions.js';
import type { Connection } from './check-store.js';
import { nodeWith } from './node-with.js';

/** Warns when Redis may evict sessions. An evicted session ends without an event: nothing is left to record it. */
export class EvictionCheck {
  /** By address: the policies that the log has warned of. */
  readonly #evicting = new Map<string, string>();

  constructor(private readonly partitions: Pick<Partitions, 'all'>) {}

  /** Warns once of each policy of a node. A node whose policy cannot be found out is left as it was. Never rejects. */
  async look(connection: Connection): Promise<void> {
    const found = await this.#policies(connection);
    const isNews = [...found].map(([node, policy]) => this.#learn(addressOf(node), policy)).includes(true);
    if (!isNews) return;
    const several = found.size > 1 || this.#evicting.size > 1;
    const policies = [...this.#evicting].map(([address, policy]) => policy + (several ? ` on ${address}` : ''));
    logger.warn(
      `Redis may evict sessions, which then end without an event: its maxmemory-policy is ${policies.join(', ')}. ` +
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

  async #policies(connection: Connection): Promise<Map<Redis, string>> {
    const asked = new Map<Redis, Promise<string | undefined>>();
    const ask = (client: Redis, key: string) => {
      const node = nodeWith(client, key);
      const policy = asked.get(node) ?? policyOf(node);
      asked.set(node, policy);
      return policy;
    };
    const keys = this.partitions.all.map(({ prefix }) => prefix);
    await Promise.all(keys.map((key) => connection.run((client) => ask(client, key), key).catch(() => undefined)));
    const policies = new Map<Redis, string>();
    for (const [node, reply] of asked) {
      const policy = await reply.catch(() => undefined);
      if (policy !== undefined) policies.set(node, policy);
    }
    return policies;
  }
}

function addressOf({ options: { host, port } }: Redis): string {
  return `${host}:${port}`;
}

/** By INFO, because CONFIG is forbidden more often. */
async function policyOf(node: Redis): Promise<string | undefined> {
  return /^maxmemory_policy:(\S+)/m.exec(await node.info('memory'))?.[1];
}
