import { Inject, Injectable } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { CleanupJob } from '../cleanup/cleanup.job.js';
import { DuePoller } from '../cleanup/due-poller.js';
import { LivingInstances } from '../connection/living-instances.js';
import { PartitionSignals } from '../connection/partition-signals.js';
import { REDIS_CONNECTIONS, type RedisConnections } from '../connection/redis-connections.js';
import { StoreConnections } from '../connection/store-connections.js';
import { type ServicesOfStore, StoreLifecycle } from '../lifecycle/store.lifecycle.js';
import { EventBroadcaster } from '../delivery/event.broadcaster.js';
import { EventConsumer } from '../delivery/event.consumer.js';
import { DeadlineStartLog } from './deadline-start.log.js';
import { REDIS_DEADLINE_OPTIONS, type ResolvedRedisDeadlineOptions } from './redis-deadline.options.js';

const SERVICES: ServicesOfStore = {
  foundation: [StoreConnections, LivingInstances],
  // After all that can refuse the start: the log.
  sources: [PartitionSignals, CleanupJob, DuePoller, DeadlineStartLog],
  listeners: [],
  handling: [EventConsumer, EventBroadcaster],
};

/** Starts the background work of deadlines when the application is complete, and ends it. */
@Injectable()
export class RedisDeadlineLifecycle extends StoreLifecycle {
  constructor(
    @Inject(ModuleRef) providers: ModuleRef,
    @Inject(REDIS_CONNECTIONS) connections: RedisConnections,
    @Inject(REDIS_DEADLINE_OPTIONS) { commandTimeout }: ResolvedRedisDeadlineOptions,
  ) {
    super(providers, connections, SERVICES, commandTimeout);
  }
}
