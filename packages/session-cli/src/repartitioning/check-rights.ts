import type { Redis } from 'ioredis';
import { isReply, partitionsByNode } from '@nest-session/redis-events/internal';
import type { SessionPartitions } from '@nest-session/redis/internal';
import { aside } from './scanned-keys.js';

/**
 * Sends each node the commands that a move needs and an application does not, so that a missing right is noticed before
 * the move begins. They name a key that does not exist, and write nothing.
 * @throws the error of ioredis for the first command that Redis denies
 */
export async function checkRights(client: Redis, partitions: SessionPartitions): Promise<void> {
  for (const [keys] of partitionsByNode(client, partitions.all).values()) {
    const key = aside(keys!, `${keys!.prefix}rights`);
    await ifAllowed(client.dump(key));
    await ifAllowed(client.restore(key, 0, ''));
    await ifAllowed(client.zscan(key, '0'));
    await ifAllowed(client.xgroup('CREATE', key, 'none', '0'));
    await ifAllowed(client.xclaim(key, 'none', 'none', 0, '0'));
  }
}

/** Redis compares the rights before the arguments. */
async function ifAllowed(command: Promise<unknown>): Promise<void> {
  await command.catch((error: unknown) => {
    if (isReply(error, 'NOPERM')) throw error;
  });
}
