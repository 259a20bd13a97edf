import type { Provider } from '@nestjs/common';
import type { Redis } from 'ioredis';
import {
  BackgroundLimiter,
  connectionToken,
  type DueList,
  DuePoller,
  DueSweeper,
  PartitionSignals,
} from '@nest-session/redis-events/internal';
import { SharedSessionSweeper } from '@nest-session/spring/internal';
import type { ResolvedRedisSessionOptions } from './configuration/redis-session.options.js';
import { BACKGROUND_SESSION_SCRIPTS, REDIS_SESSION_OPTIONS } from './configuration/redis-session.tokens.js';
import { SessionExpirationSweeper } from './expiration/session-expiration.sweeper.js';
import { SortedSetExpirationStore } from './expiration/sorted-set-expiration.store.js';
import { tracedPass } from './expiration/traced-sweep.js';
import type { SessionKeys } from './keys/session-keys.js';
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
    inject: [
      REDIS_SESSION_OPTIONS,
      SortedSetExpirationStore,
      SharedSessionSweeper,
      SessionPartitions,
      PartitionSignals,
    ],
    useFactory: duePoller,
  },
  {
    provide: SessionExpirationSweeper,
    inject: [
      connectionToken('background'),
      BACKGROUND_SESSION_SCRIPTS,
      SessionPartitions,
      REDIS_SESSION_OPTIONS,
      BackgroundLimiter,
      SharedSessionSweeper,
    ],
    useFactory: expirationSweeper,
  },
  {
    provide: DueSweeper,
    inject: [REDIS_SESSION_OPTIONS, SessionExpirationSweeper, SharedSessionSweeper],
    useFactory: ({ spring }: ResolvedRedisSessionOptions, own: DueSweeper, shared: DueSweeper) =>
      spring ? shared : own,
  },
];

function sortedSetStore(
  client: Redis,
  scripts: SessionScripts,
  { batchSize }: ResolvedRedisSessionOptions,
  limiter: BackgroundLimiter,
): SortedSetExpirationStore {
  return new SortedSetExpirationStore(client, scripts, batchSize, limiter);
}

/**
 * Where the sessions are those of Spring, their ends are not noted in our form, and a script for that would report live
 * ones.
 */
function expirationSweeper(
  client: Redis,
  scripts: SessionScripts,
  partitions: SessionPartitions,
  options: ResolvedRedisSessionOptions,
  limiter: BackgroundLimiter,
  shared: SharedSessionSweeper,
): SessionExpirationSweeper {
  const { spring } = options;
  const stores = spring && (spring === 'shared' ? [shared] : []);
  return new SessionExpirationSweeper(client, scripts, partitions, options, limiter, stores);
}

function duePoller(
  { spring }: ResolvedRedisSessionOptions,
  store: SortedSetExpirationStore,
  shared: SharedSessionSweeper,
  partitions: SessionPartitions,
  signals: PartitionSignals,
): DuePoller<SessionKeys> {
  const list = spring ? shared : store;
  const claimIn: DueList<SessionKeys>['claimIn'] = (keys, tally, options) =>
    tracedPass('poll', partitions, tally, () => list.claimIn(keys, tally, options));
  return new DuePoller('sessions', { claimIn }, partitions.all, signals);
}
