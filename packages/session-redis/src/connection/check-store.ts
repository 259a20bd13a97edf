import { InvalidSessionOptionsError } from '@nest-session/core';
import type { Redis } from 'ioredis';
import type { Partitions } from '../partitions/partitions.js';

/** Version of the data format, see the page "The data model in Redis" of the documentation. */
const FORMAT = '2';

/** Where commands are run. */
export interface Connection {
  /** Runs a command on a client of the node that has a key, or on one of the whole Cluster. */
  run<T>(command: (client: Redis) => Promise<T>, key: string): Promise<T>;
}

/**
 * Checks on the first connection that this version can use the data in Redis. The first instance records the format and
 * the number of partitions there.
 * @throws InvalidSessionOptionsError when they differ, and whatever the connection throws
 */
export async function checkStore(connection: Connection, partitions: Partitions): Promise<void> {
  const { namespace, meta, count } = partitions;
  const recorded = () => connection.run((client) => client.hmget(meta, 'version', 'partitions'), meta);
  // Written only when missing, so that an instance also starts on a Redis that is out of memory.
  if ((await recorded()).includes(null)) {
    await connection.run((client) => client.hsetnx(meta, 'version', FORMAT), meta);
    await connection.run((client) => client.hsetnx(meta, 'partitions', count), meta);
  }
  const [version, record] = await recorded();
  if (version !== FORMAT) refuse(namespace, formatProblem(String(version)));
  if (record !== `${count}`) refuse(namespace, partitionsProblem(String(record), count));
}

/**
 * The partitions that an application has recorded, for a command that moves sessions: it records nothing itself.
 * @throws InvalidSessionOptionsError when no application has started in the namespace, or one of another format
 */
export async function recordedPartitions(client: Redis, { namespace, meta }: Partitions): Promise<string> {
  const [version, recorded] = await client.hmget(meta, 'version', 'partitions');
  if (recorded == null) {
    throw new InvalidSessionOptionsError('RedisSessionModule', [
      `There is nothing to move: no application has started in namespace ${JSON.stringify(namespace)} yet.`,
    ]);
  }
  if (version !== FORMAT) refuse(namespace, formatProblem(String(version)));
  return recorded;
}

/** A number of partitions, for a sentence. */
export function shownCount(partitions: string): string {
  return partitions === '1' ? '1 partition' : `${partitions} partitions`;
}

/** @throws InvalidSessionOptionsError */
export function refuse(namespace: string, problem: string): never {
  throw new InvalidSessionOptionsError('RedisSessionModule', [
    `The sessions in namespace ${JSON.stringify(namespace)} ${problem}`,
  ]);
}

function formatProblem(version: string): string {
  return (
    `have format ${version}, but this version of the library uses format ${FORMAT}. Use another namespace, or the ` +
    'version that wrote them.'
  );
}

const MORE = 'See the page "Repartitioning" of the documentation.';

/** Why this instance cannot use the recorded partitions, and what to do. */
function partitionsProblem(record: string, count: number): string {
  const [from, to] = record.split('>');
  const command = `nest-session-redis repartition --from ${from} --to`;
  if (to !== undefined) {
    return (
      `are being moved from ${from} to ${to} partitions. Run \`${command} ${to}\` until it has finished, and set option ` +
      `\`partitions\` to ${to}. ${MORE}`
    );
  }
  return (
    `are in ${shownCount(record)}, but option \`partitions\` is ${count}. Set it to ${record}, or use another namespace. To ` +
    `move them, stop all instances and run \`${command} ${count}\`. ${MORE}`
  );
}
