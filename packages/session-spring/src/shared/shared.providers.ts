import type { Provider } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { connectionToken } from '@nest-session/redis-events/internal';
import {
  REDIS_SESSION_OPTIONS,
  type ResolvedRedisSessionOptions,
  SessionPartitions,
} from '@nest-session/redis/internal';
import { SharedKeys } from '../keys/shared-keys.js';
import { SharedSessionListener } from './shared-session.listener.js';
import { SharedSessionRepository } from './shared-session.repository.js';
import { SharedSessionSweeper } from './shared-session.sweeper.js';
import { SpringApplicationCheck } from './spring-application.check.js';

/** What shares sessions with Spring. It does nothing unless `spring` is `'shared'`. */
export const SHARED_PROVIDERS: Provider[] = [
  {
    provide: SharedKeys,
    inject: [REDIS_SESSION_OPTIONS, SessionPartitions, connectionToken('background')],
    useFactory: ({ springNamespace }: ResolvedRedisSessionOptions, { all }: SessionPartitions, client: Redis) =>
      new SharedKeys(springNamespace, all[0]!, client.options.db ?? 0),
  },
  SharedSessionRepository,
  SharedSessionSweeper,
  SharedSessionListener,
  SpringApplicationCheck,
];
