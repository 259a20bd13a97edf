import { Inject, Injectable } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import {
  CleanupJob,
  DuePoller,
  EventBroadcaster,
  EventConsumer,
  KeyspaceNotificationListener,
  LivingInstances,
  PartitionSignals,
  REDIS_CONNECTIONS,
  type RedisConnections,
  type ServicesOfStore,
  StoreConnections,
  StoreLifecycle,
} from '@nest-session/redis-events/internal';
import { type ResolvedSpringSessionOptions, SPRING_SESSION_OPTIONS } from './configuration/spring-session.options.js';
import type { SpringMode } from './keys/spring-namespace.js';
import { SharedSessionListener } from './shared/shared-session.listener.js';
import { SpringApplicationCheck } from './shared/spring-application.check.js';
import { SpringStartLog } from './spring-start.log.js';

/** What runs in the background, in the order in which it begins. */
const SERVICES: Readonly<Record<SpringMode, ServicesOfStore>> = {
  // Spring itself notices the ends of its sessions.
  read: {
    foundation: [StoreConnections],
    sources: [SpringStartLog],
    listeners: [KeyspaceNotificationListener],
    handling: [],
  },
  shared: {
    foundation: [StoreConnections, SpringApplicationCheck, LivingInstances],
    // After all that can refuse the start: the log.
    sources: [SharedSessionListener, PartitionSignals, CleanupJob, DuePoller, SpringStartLog],
    listeners: [KeyspaceNotificationListener],
    handling: [EventConsumer, EventBroadcaster],
  },
};

/** Starts the background work of sessions of Spring when the application is complete, and ends it. */
@Injectable()
export class SpringSessionLifecycle extends StoreLifecycle {
  constructor(
    @Inject(ModuleRef) providers: ModuleRef,
    @Inject(REDIS_CONNECTIONS) connections: RedisConnections,
    @Inject(SPRING_SESSION_OPTIONS) { mode, commandTimeout }: ResolvedSpringSessionOptions,
  ) {
    super(providers, connections, SERVICES[mode], commandTimeout);
  }
}
