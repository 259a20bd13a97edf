import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type Type,
} from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { CleanupJob } from './cleanup/cleanup.job.js';
import { DuePoller } from './cleanup/due-poller.js';
import type { ResolvedRedisSessionOptions } from './configuration/redis-session.options.js';
import { REDIS_SESSION_OPTIONS } from './configuration/redis-session.tokens.js';
import { closeConnection } from './connection/close-connection.js';
import { LivingInstances } from './connection/living-instances.js';
import { PartitionSignals } from './connection/partition-signals.js';
import { closeConnections, REDIS_CONNECTIONS, type RedisConnections } from './connection/redis-connections.js';
import { StoreConnections } from './connection/store-connections.js';
import { EventBroadcaster } from './delivery/event.broadcaster.js';
import { EventConsumer } from './delivery/event.consumer.js';
import { ExpiredSessionListener } from './expiration/expired-session.listener.js';
import { OlderSessionSweeper } from './expiration/older-session.sweeper.js';
import { TimedSessionListener } from './expiration/timed-session.listener.js';
import { logger } from './logging/redis-session.logger.js';
import { KeyspaceNotificationListener } from './notifications/keyspace-notification.listener.js';
import { SessionEpochsListener } from './repository/session-epochs.listener.js';
import { StartLog } from './start.log.js';
import type { BackgroundService } from './timing/background-service.js';
import { settledWithin } from './timing/settled-within.js';

/** What runs in the background, in the order in which it begins. */
function servicesOf({ notifications, expirations }: ResolvedRedisSessionOptions) {
  return {
    /** Everything else needs these. They end last, one after the other. */
    foundation: [StoreConnections, LivingInstances],
    /** These find work. They end when the shutdown begins, before Nest closes the server. */
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
    /** This ends at the same time. It waits for handlers of the application, however long they take. */
    listeners: [KeyspaceNotificationListener],
    /**
     * These begin no event more when the shutdown begins, and end after the last handler and the requests in flight.
     */
    handling: [EventConsumer, EventBroadcaster],
  } satisfies Record<string, Type<BackgroundService>[]>;
}

const RECOMMENDED_GRACE = 120_000;
// Milliseconds that a shutdown waits for background work.
const PATIENCE = 5000;

/**
 * Starts the background work when the application is complete, and ends it in the order that loses nothing: it begins
 * nothing new, lets requests in flight finish (Nest closes the server in between), then handlers, then closes
 * connections.
 */
@Injectable()
export class RedisSessionLifecycle implements OnApplicationBootstrap, BeforeApplicationShutdown, OnApplicationShutdown {
  readonly #services: ReturnType<typeof servicesOf>;
  #handled: Promise<unknown> = Promise.resolve();

  constructor(
    @Inject(ModuleRef) private readonly providers: ModuleRef,
    @Inject(REDIS_SESSION_OPTIONS) private readonly options: ResolvedRedisSessionOptions,
    @Inject(REDIS_CONNECTIONS) private readonly connections: RedisConnections,
  ) {
    this.#services = servicesOf(options);
  }

  async onApplicationBootstrap(): Promise<void> {
    const { foundation, sources, listeners, handling } = this.#services;
    try {
      for (const service of this.#all([...foundation, ...sources, ...listeners])) await service.start();
    } catch (error) {
      // Nest runs no shutdown hooks after a failed start, and an open connection keeps the process alive.
      void closeConnections(this.connections);
      throw error;
    }
    if (this.options.grace < RECOMMENDED_GRACE) {
      logger.warn(
        'Option `grace` is below 2m: sessions that end during a short outage are reported without their data. ' +
          'Set a longer one',
      );
    }
    const started = this.#all(handling).map(async (service) => service.start());
    await settledWithin(this.options.commandTimeout, Promise.all(started));
  }

  async beforeApplicationShutdown(): Promise<void> {
    const { background } = this.connections;
    // Background work would wait for Redis, and the shutdown for the work.
    if (background.status !== 'ready') void closeConnection(background);
    const { sources, listeners, handling } = this.#services;
    this.#handled = this.#stop(handling);
    await Promise.all([this.#finish(this.#stop(sources)), this.#stop(listeners)]);
  }

  async onApplicationShutdown(): Promise<void> {
    // The dispatcher has waited for the handlers. This waits until Redis knows their results.
    await this.#finish(this.#handled);
    for (const service of this.#services.foundation.toReversed()) await this.#finish(this.#stop([service]));
    void closeConnections(this.connections);
  }

  #all(services: readonly Type<BackgroundService>[]): BackgroundService[] {
    return services.map((service) => this.providers.get<BackgroundService>(service));
  }

  #stop(services: readonly Type<BackgroundService>[]): Promise<unknown> {
    return Promise.all(this.#all(services).map(async (service) => service.stop()));
  }

  /**
   * Waits for background work. When Redis does not reply in time, closes its connection: later commands get no reply
   * either.
   */
  async #finish(work: Promise<unknown>): Promise<void> {
    if (!(await settledWithin(PATIENCE, work))) void closeConnection(this.connections.background);
  }
}
