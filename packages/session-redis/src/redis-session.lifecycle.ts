import { Inject, Injectable } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import {
  CleanupJob,
  DuePoller,
  EventBroadcaster,
  EventConsumer,
  KeyspaceNotificationListener,
  LivingInstances,
  logger,
  PartitionSignals,
  REDIS_CONNECTIONS,
  type RedisConnections,
  type ServicesOfStore,
  StoreConnections,
  StoreLifecycle,
} from '@nest-session/redis-events/internal';
import type { ResolvedRedisSessionOptions } from './configuration/redis-session.options.js';
import { REDIS_SESSION_OPTIONS } from './configuration/redis-session.tokens.js';
import { ExpiredSessionListener } from './expiration/expired-session.listener.js';
import { OlderSessionSweeper } from './expiration/older-session.sweeper.js';
import { TimedSessionListener } from './expiration/timed-session.listener.js';
import { SessionEpochsListener } from './repository/session-epochs.listener.js';
import { StartLog } from './start.log.js';

/** What runs in the background, in the order in which it begins. */
function servicesOf({ notifications, expirations }: ResolvedRedisSessionOptions): ServicesOfStore {
  return {
    foundation: [StoreConnections, LivingInstances],
    sources: [
      TimedSessionListener,
      ...(notifications === 'auto' ? [ExpiredSessionListener] : []),
      PartitionSignals,
      CleanupJob,
      ...(expirations.store === 'sorted-set' ? [DuePoller] : []),
      SessionEpochsListener,
      OlderSessionSweeper,
      // After all that can refuse the start.
      StartLog,
    ],
    listeners: [KeyspaceNotificationListener],
    handling: [EventConsumer, EventBroadcaster],
  };
}

const RECOMMENDED_GRACE = 120_000;

/** Starts the background work of sessions when the application is complete, and ends it. */
@Injectable()
export class RedisSessionLifecycle extends StoreLifecycle {
  constructor(
    @Inject(ModuleRef) providers: ModuleRef,
    @Inject(REDIS_SESSION_OPTIONS) private readonly options: ResolvedRedisSessionOptions,
    @Inject(REDIS_CONNECTIONS) connections: RedisConnections,
  ) {
    super(providers, connections, servicesOf(options), options.commandTimeout);
  }

  protected override begun(): void {
    if (this.options.grace >= RECOMMENDED_GRACE) return;
    logger.warn(
      'Option `grace` is below 2m: sessions that end during a short outage are reported without their data. ' +
        'Set a longer one',
    );
  }
}
