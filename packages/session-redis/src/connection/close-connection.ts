import type { Redis } from 'ioredis';

/** Ends a connection for good, and fails what still waits for its answer. */
export function closeConnection(client: Redis): void {
  // ioredis would wait for the end of a connection that has ended, and keep the process alive for two seconds.
  if (client.status === 'end') return;
  // And while it waits to connect again, disconnect() alone leaves what waits with it waiting for ever.
  if (client.status === 'reconnecting') client.connect().catch(() => undefined);
  client.disconnect();
}
