import { Inject, Injectable } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { CleanupJob } from '../cleanup/cleanup.job.js';
import { LivingInstances } from '../connection/living-instances.js';
import { PartitionSignals } from '../connection/partition-signals.js';
import { REDIS_CONNECTIONS, type RedisConnections } from '../connection/redis-connections.js';
import { StoreConnections } from '../connection/store-connections.js';
import { EventBroadcaster } from '../delivery/event.broadcaster.js';
import { EventConsumer } from '../delivery/event.consumer.js';
import { ContentStartLog } from '../lifecycle/content-start.log.js';
import { type ServicesOfStore, StoreLifecycle } from '../lifecycle/store.lifecycle.js';
import { KeyspaceNotificationListener } from '../notifications/keyspace-notification.listener.js';
import { REDIS_EVENTS_OPTIONS, type ResolvedRedisEventsOptions } from '../configuration/redis-events.options.js';

const SERVICES: ServicesOfStore = {
  foundation: [StoreConnections, LivingInstances],
  // After all that can refuse the start: the log.
  sources: [PartitionSignals, CleanupJob, ContentStartLog],
  listeners: [KeyspaceNotificationListener],
  handling: [EventConsumer, EventBroadcaster],
};

/** Starts the background work of events when the application is complete, and ends it. */
@Injectable()
export class RedisEventsLifecycle extends StoreLifecycle {
  constructor(
    @Inject(ModuleRef) providers: ModuleRef,
    @Inject(REDIS_CONNECTIONS) connections: RedisConnections,
    @Inject(REDIS_EVENTS_OPTIONS) { commandTimeout }: ResolvedRedisEventsOptions,
  ) {
    super(providers, connections, SERVICES, commandTimeout);
  }
}
