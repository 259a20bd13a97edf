import type { FactoryProvider } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { connectionToken, type RedisConnections } from '../connection/redis-connections.js';
import type { RedisNodes } from '../connection/redis-nodes.js';
import { KeyspaceNotificationListener } from './keyspace-notification.listener.js';

/** Provides a listener on a connection of the module. */
export function keyEventListener(
  provide: symbol | typeof KeyspaceNotificationListener,
  name: keyof RedisConnections,
): FactoryProvider<KeyspaceNotificationListener> {
  return {
    provide,
    inject: [connectionToken(name), connectionToken('background')],
    useFactory: (nodes: RedisNodes, commands: Redis) => new KeyspaceNotificationListener(nodes, commands),
  };
}
