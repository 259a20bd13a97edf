import { Inject, Injectable } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import {
  CleanupJob,
  DuePoller,
  EventBroadcaster,
  EventConsumer,
  LivingInstances,
  PartitionSignals,
  REDIS_CONNECTIONS,
  type RedisConnections,
  type ServicesOfStore,
  StoreConnections,
  StoreLifecycle,
  ContentStartLog,
} from '@nest-session/redis-events/internal';
import { REDIS_DEADLINE_OPTIONS, type ResolvedRedisDeadlineOptions } from './redis-deadline.options.js';

const SERVICES: ServicesOfStore = {
  foundation: [StoreConnections, LivingInstances],
  // After all that can refuse the start: the log.
  sources: [PartitionSignals, CleanupJob, DuePoller, ContentStartLog],
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
