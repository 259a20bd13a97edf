import { OutageLog } from './outage.log.js';
import { isAnswer } from './reply.errors.js';
import { storeError } from './request.connection.js';
import {
  type ConnectionOptions,
  createConnections,
  closeConnections,
  type RedisConnections,
} from './redis-connections.js';
import { unreachable } from './unreachable.js';

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
    await connections.background.connect().catch((error: unknown) => {
      throw unreachable(options.connection, outage.reason ?? error);
    });
    return await work(connections).catch((error: unknown) => {
      throw isAnswer(error) ? storeError(error) : error;
    });
  } finally {
    await closeConnections(connections);
  }
}
