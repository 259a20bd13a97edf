import type { Redis } from 'ioredis';

/** Closes a connection for good. Commands without a reply fail. */
export function closeConnection(client: Redis): void {
  // On a connection that has ended, disconnect() keeps the process alive for two seconds.
  if (client.status === 'end') return;
  // While ioredis waits for its next attempt, disconnect() alone leaves queued commands waiting for ever.
  if (client.status === 'reconnecting') client.connect().catch(() => undefined);
  client.disconnect();
}
