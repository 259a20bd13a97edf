import type { Redis } from 'ioredis';

/**
 * Ends a connection for good, and fails what still waits for its answer. `disconnect()` alone, while ioredis waits to
 * connect again, would leave that waiting for ever.
 */
export function closeConnection(client: Redis): void {
  if (client.status === 'reconnecting') client.connect().catch(() => undefined);
  client.disconnect();
}
