import type { Provider } from '@nestjs/common';
import { OutageLog } from '../connection/outage.log.js';
import { PartitionSignals } from '../connection/partition-signals.js';
import {
  CONNECTION_OPTIONS,
  type ConnectionOptions,
  CONNECTIONS_TO_SHARE,
  type ConnectionsToShare,
  connectionToken,
  createConnections,
  REDIS_CONNECTIONS,
  type RedisConnections,
} from '../connection/redis-connections.js';
import { RequestConnection } from '../connection/request.connection.js';
import { StoreConnections } from './store-connections.js';

const INJECTED = ['request', 'writes', 'background', 'subscriber', 'notifications', 'signals'] as const;

export const CONNECTION_PROVIDERS: Provider[] = [
  ...INJECTED.map((name) => ({
    provide: connectionToken(name),
    inject: [REDIS_CONNECTIONS],
    useFactory: (connections: RedisConnections) => connections[name],
  })),
  RequestConnection,
  StoreConnections,
  PartitionSignals,
];

export const SHARED_CONNECTIONS: Provider[] = [
  OutageLog,
  {
    provide: REDIS_CONNECTIONS,
    inject: [CONNECTION_OPTIONS, OutageLog, { token: CONNECTIONS_TO_SHARE, optional: true }],
    useFactory: (
      options: ConnectionOptions & { readonly isShared: boolean },
      log: OutageLog,
      shared?: ConnectionsToShare,
    ) => createConnections(options, log, options.isShared ? shared?.connections : undefined),
  },
];
