import { SessionStoreError } from '@nest-session/core';
import { shownError } from '@nest-session/core/internal';
import { adviceFor } from '../logging/advice.js';
import { OutageLog } from './outage.log.js';
import { isAnswer } from './reply.errors.js';
import { storeError } from './request.connection.js';
import {
  type ConnectionOptions,
  createConnections,
  closeConnections,
  type RedisConnections,
} from './redis-connections.js';
import { shownAddress } from './shown-address.js';

/**
 * Connects, does the work, and closes the connections: for what runs beside the applications.
 * @throws SessionStoreError when Redis cannot be reached, or replies with an error, and whatever else the work throws
 */
export async function withConnections<T>(
  options: ConnectionOptions,
  work: (connections: RedisConnections) => Promise<T>,
): Promise<T> {
  const outage = new OutageLog();
  const connections = createConnections(options, outage);
  try {
    // ioredis itself rejects with `Connection is closed.`
    await connections.background.connect().catch((error: unknown) => refuse(options, outage.reason ?? error));
    return await work(connections).catch((error: unknown) => {
      throw isAnswer(error) ? storeError(error) : error;
    });
  } finally {
    await closeConnections(connections);
  }
}

function refuse({ connection }: ConnectionOptions, cause: unknown): never {
  const reason = `Redis (${shownAddress(connection)}) cannot be reached: ${shownError(cause)}`;
  const advice = adviceFor(cause) || '. Start it, or correct its address';
  throw new SessionStoreError(reason + advice, { cause });
}
