import { InvalidSessionOptionsError } from '@nest-session/core';
import type { Redis } from 'ioredis';
import type { SessionPartitions } from '../keys/session-partitions.js';
import { logger } from '../logging/redis-session.logger.js';
import { shownText } from '@nest-session/core/store';

/** Version of the data format in Redis; see docs/redis-data-model.md. */
const FORMAT = '1';

interface Connection {
  /** Without `key`: on any node. */
  run<T>(command: (client: Redis) => Promise<T>, key?: string): Promise<T>;
}

/**
 * Checks on the first connection that this version can use the data in Redis. The first instance records the format and
 * the number of partitions there.
 * @throws InvalidSessionOptionsError when they differ, and whatever the connection throws
 */
export async function checkStore(connection: Connection, { namespace, meta, all }: SessionPartitions): Promise<void> {
  const recorded = () => connection.run((client) => client.hmget(meta, 'version', 'partitions'), meta);
  const count = String(all.length);
  // Written only when missing, so that an instance also starts on a Redis that is out of memory.
  if ((await recorded()).includes(null)) {
    await connection.run((client) => client.hsetnx(meta, 'version', FORMAT), meta);
    await connection.run((client) => client.hsetnx(meta, 'partitions', count), meta);
  }
  const [version, partitions] = await recorded();
  if (version !== FORMAT) {
    throw new InvalidSessionOptionsError('RedisSessionModule', [
      `The sessions in namespace ${JSON.stringify(namespace)} have format ${version}, but this version of the library ` +
        `uses format ${FORMAT}. Use another namespace, or the version that wrote them.`,
    ]);
  }
  if (partitions !== count) {
    throw new InvalidSessionOptionsError('RedisSessionModule', [
      `The sessions in namespace ${JSON.stringify(namespace)} are in ${partitions} partitions, but option \`partitions\` ` +
        `is ${count}. Set it to ${partitions}, or use another namespace: sessions cannot change their partitions.`,
    ]);
  }
  await warnAboutEviction(connection);
}

/** A session that Redis evicts ends without an event: nothing is left that could record it. */
async function warnAboutEviction(connection: Connection): Promise<void> {
  // INFO, because CONFIG is forbidden more often. Where INFO is forbidden too, there is no warning.
  const memory = await connection.run((client) => client.info('memory')).catch(() => '');
  const policy = /^maxmemory_policy:(\S+)/m.exec(memory)?.[1];
  if (policy === undefined || policy === 'noeviction') return;
  logger.warn(
    `Redis may evict sessions, which then end without an event: its maxmemory-policy is ${shownText(policy)}. Set it to noeviction`,
  );
}
