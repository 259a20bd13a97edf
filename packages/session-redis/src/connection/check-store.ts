import { InvalidSessionOptionsError } from '@nest-session/core';
import { shownText } from '@nest-session/core/internal';
import type { Redis } from 'ioredis';
import { nodeWith } from './node-with.js';
import type { SessionPartitions } from '../keys/session-partitions.js';
import { logger } from '../logging/redis-session.logger.js';

/** Version of the data format in Redis; see docs/redis-data-model.md. */
const FORMAT = '2';

interface Connection {
  /** Runs a command on a client of the node that has a key, or on one of the whole Cluster. */
  run<T>(command: (client: Redis) => Promise<T>, key: string): Promise<T>;
}

/**
 * Checks on the first connection that this version can use the data in Redis. The first instance records the format and
 * the number of partitions there.
 * @throws InvalidSessionOptionsError when they differ, and whatever the connection throws
 */
export async function checkStore(connection: Connection, partitions: SessionPartitions): Promise<void> {
  const { namespace, meta, records } = partitions;
  const recorded = () => connection.run((client) => client.hmget(meta, 'version', 'partitions'), meta);
  // Written only when missing, so that an instance also starts on a Redis that is out of memory.
  if ((await recorded()).includes(null)) {
    await connection.run((client) => client.hsetnx(meta, 'version', FORMAT), meta);
    await connection.run((client) => client.hsetnx(meta, 'partitions', records.before), meta);
  }
  const [version, record] = await recorded();
  const refuse = (problem: string): never => {
    throw new InvalidSessionOptionsError('RedisSessionModule', [
      `The sessions in namespace ${JSON.stringify(namespace)} ${problem}`,
    ]);
  };
  if (version !== FORMAT) {
    refuse(
      `have format ${version}, but this version of the library uses format ${FORMAT}. Use another namespace, or the ` +
        'version that wrote them.',
    );
  }
  if (!partitions.learn(record ?? null)) {
    refuse(partitionsProblem(String(record), partitions, !(await isInClusterMode(connection, meta))));
  }
  if (partitions.hasTwoLayouts) await refuseClusterMode(connection, partitions);
  await warnAboutEviction(connection, partitions);
}

/**
 * The partitions that an application has recorded, for a command that moves sessions: it records nothing itself.
 * @throws InvalidSessionOptionsError when no application has started in the namespace
 */
export async function recordedPartitions(client: Redis, { namespace, meta }: SessionPartitions): Promise<string> {
  const recorded = await client.hget(meta, 'partitions');
  if (recorded !== null) return recorded;
  throw new InvalidSessionOptionsError('RedisSessionModule', [
    `There is nothing to move: no application has started in namespace ${JSON.stringify(namespace)} yet.`,
  ]);
}

/**
 * A session moves in one script, with keys of both partitions, which are in two slots.
 * @throws InvalidSessionOptionsError when the server is in Cluster mode, also one that has all slots and is used by its url
 */
export async function refuseClusterMode(connection: Connection, { meta }: SessionPartitions): Promise<void> {
  if (!(await isInClusterMode(connection, meta))) return;
  throw new InvalidSessionOptionsError('RedisSessionModule', [
    'Sessions on a server in Cluster mode cannot move to other partitions: do that before you move them to a Cluster. See ' +
      'docs/repartitioning.md.',
  ]);
}

/** False as well where INFO is forbidden. */
async function isInClusterMode(connection: Connection, key: string): Promise<boolean> {
  const info = await connection.run((client) => client.info('cluster').catch(() => ''), key);
  return info.includes('cluster_enabled:1');
}

/** Why this instance cannot use the recorded partitions, and what to do. */
function partitionsProblem(record: string, { records, hasTwoLayouts }: SessionPartitions, mayMove: boolean): string {
  const [from, to] = record.split('>');
  if (to !== undefined) {
    return (
      `are being moved from ${from} to ${to} partitions. Set option \`partitions\` to { from: ${from}, to: ${to} } until ` +
      '`nest-session-redis repartition` has finished.'
    );
  }
  const given = hasTwoLayouts ? `{ from: ${records.before}, to: ${records.after} }` : records.before;
  const move =
    !mayMove || hasTwoLayouts || records.before === record
      ? ''
      : ` To move them, set { from: ${record}, to: ${given} } first.`;
  return (
    `are in ${record} partitions, but option \`partitions\` is ${given}. Set it to ${record}, or use another namespace.` +
    `${move} See docs/repartitioning.md.`
  );
}

/** A session that Redis evicts ends without an event: nothing is left that could record it. */
async function warnAboutEviction(connection: Connection, { all }: SessionPartitions): Promise<void> {
  const policies = new Map<Redis, Promise<string | undefined>>();
  const ask = (client: Redis, key: string) => {
    const node = nodeWith(client, key);
    const policy = policies.get(node) ?? policyOf(node);
    policies.set(node, policy);
    return policy;
  };
  // Where the policy cannot be found out, there is no warning.
  await Promise.all(
    all.map(({ prefix }) => connection.run((client) => ask(client, prefix), prefix).catch(() => undefined)),
  );
  const evicting: string[] = [];
  for (const [{ options }, reply] of policies) {
    const policy = await reply.catch(() => undefined);
    if (policy === undefined || policy === 'noeviction') continue;
    evicting.push(shownText(policy) + (policies.size > 1 ? ` on ${options.host}:${options.port}` : ''));
  }
  if (evicting.length === 0) return;
  logger.warn(
    `Redis may evict sessions, which then end without an event: its maxmemory-policy is ${evicting.join(', ')}. ` +
      'Set it to noeviction',
  );
}

/** By INFO, because CONFIG is forbidden more often. */
async function policyOf(node: Redis): Promise<string | undefined> {
  return /^maxmemory_policy:(\S+)/m.exec(await node.info('memory'))?.[1];
}
