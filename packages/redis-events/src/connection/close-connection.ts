import type { Cluster, Redis } from 'ioredis';
import { isCluster } from './node-with.js';

const closings = new WeakMap<Redis | Cluster, Promise<void>>();

/** For good: commands without a reply fail. Resolves when Redis executes nothing more of it. Never rejects. */
export function closeConnection(client: Redis | Cluster): Promise<void> {
  // On a connection that has ended, disconnect() keeps the process alive for two seconds.
  if (client.status === 'end') return Promise.resolve();
  const closing = closings.get(client) ?? close(client);
  closings.set(client, closing);
  return closing;
}

function close(client: Redis | Cluster): Promise<void> {
  // Not events.once(): it rejects when the connection reports an error while it closes.
  const ended = new Promise<void>((resolve) => client.once('end', resolve));
  // A connection that is cut off while it is being made fails. That is no outage.
  client.removeAllListeners('error').on('error', () => undefined);
  if (isCluster(client)) {
    // Between two attempts to connect, a client of a Cluster has no nodes, and never reports that it has ended.
    const hasNodes = client.status === 'wait' || client.nodes().length > 0;
    client.disconnect();
    // Closed while it asks a node for the slots, it sets the timer that keeps the process alive.
    Object.defineProperty(client, 'slotsTimer', { get: () => undefined, set: clearTimeout });
    return hasNodes ? ended : Promise.resolve();
  }
  // While ioredis waits for its next attempt, disconnect() alone leaves queued commands waiting for ever.
  if (client.status === 'reconnecting') client.connect().catch(() => undefined);
  client.disconnect();
  // ioredis 5 disconnects again when a connection ends while it is being made: a timer of two seconds that nothing
  // stops.
  client.disconnect = () => undefined;
  return ended;
}
