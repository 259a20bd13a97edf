import type { Provider } from '@nestjs/common';
import { PartitionSignals } from './partition-signals.js';
import { connectionToken, REDIS_CONNECTIONS, type RedisConnections } from './redis-connections.js';
import { RequestConnection } from './request.connection.js';
import { StoreConnections } from './store-connections.js';

/** What uses the `REDIS_CONNECTIONS` of a module, by its `CONNECTION_OPTIONS`. */
export const CONNECTION_PROVIDERS: Provider[] = [
  connection('request'),
  connection('writes'),
  connection('background'),
  connection('subscriber'),
  connection('notifications'),
  connection('signals'),
  RequestConnection,
  StoreConnections,
  PartitionSignals,
];

function connection(name: keyof RedisConnections): Provider {
  const useFactory = (connections: RedisConnections) => connections[name];
  return { provide: connectionToken(name), inject: [REDIS_CONNECTIONS], useFactory };
}
