import type { Provider } from '@nestjs/common';
import type { Redis } from 'ioredis';
import {
  BackgroundLimiter,
  connectionToken,
  DuePoller,
  DueSweeper,
  PartitionSignals,
} from '@nest-session/redis-events/internal';
import type { ResolvedRedisSessionOptions } from './configuration/redis-session.options.js';
import { BACKGROUND_SESSION_SCRIPTS, REDIS_SESSION_OPTIONS } from './configuration/redis-session.tokens.js';
import { SessionExpirationSweeper } from './expiration/session-expiration.sweeper.js';
import { SortedSetExpirationStore } from './expiration/sorted-set-expiration.store.js';
import { tracedPoller } from './expiration/traced-sweep.js';
import { SessionPartitions } from './keys/session-partitions.js';
import type { SessionScripts } from './scripts/session/session.scripts.js';

/** What looks for sessions that have ended, wherever their ends are noted. */
export const SWEEP_PROVIDERS: Provider[] = [
  {
    provide: SortedSetExpirationStore,
    inject: [connectionToken('background'), BACKGROUND_SESSION_SCRIPTS, REDIS_SESSION_OPTIONS, BackgroundLimiter],
    useFactory: sortedSetStore,
  },
  {
    provide: DuePoller,
    inject: [SortedSetExpirationStore, SessionPartitions, PartitionSignals],
    useFactory: tracedPoller,
  },
  {
    provide: SessionExpirationSweeper,
    inject: [
      connectionToken('background'),
      BACKGROUND_SESSION_SCRIPTS,
      SessionPartitions,
      REDIS_SESSION_OPTIONS,
      BackgroundLimiter,
    ],
    useFactory: expirationSweeper,
  },
  { provide: DueSweeper, useExisting: SessionExpirationSweeper },
];

function sortedSetStore(
  client: Redis,
  scripts: SessionScripts,
  { batchSize }: ResolvedRedisSessionOptions,
  limiter: BackgroundLimiter,
): SortedSetExpirationStore {
  return new SortedSetExpirationStore(client, scripts, batchSize, limiter);
}

function expirationSweeper(
  client: Redis,
  scripts: SessionScripts,
  partitions: SessionPartitions,
  options: ResolvedRedisSessionOptions,
  limiter: BackgroundLimiter,
): SessionExpirationSweeper {
  return new SessionExpirationSweeper(client, scripts, partitions, options, limiter);
}
