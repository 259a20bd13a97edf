import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  Optional,
} from '@nestjs/common';
import { SessionStoreError } from '@nest-session/core';
import type { SessionEventDispatcher } from '@nest-session/core/store';
import { SchedulerRegistry } from '@nestjs/schedule';
import type { Redis } from 'ioredis';
import { settledWithin } from './timing/settled-within.js';
import { closeConnection } from './connection/close-connection.js';
import type { RedisConnections } from './connection/redis-connections.js';
import { isAnswer } from './connection/reply.errors.js';
import { RequestConnection } from './connection/request.connection.js';
import { checkStore } from './connection/check-store.js';
import { SessionEventBroadcaster } from './delivery/session-event.broadcaster.js';
import { SessionEventConsumer } from './delivery/session-event.consumer.js';
import { SessionEventTrimmer } from './delivery/session-event.trimmer.js';
import { ExpiredSessionListener } from './expiration/expired-session.listener.js';
import { SessionCleanupJob } from './expiration/session-cleanup.job.js';
import { SessionExpirationSweeper } from './expiration/session-expiration.sweeper.js';
import { SessionPartitions } from './keys/session-partitions.js';
import { KeyspaceNotificationListener } from './notifications/keyspace-notification.listener.js';
import type { ResolvedRedisSessionOptions } from './configuration/redis-session.options.js';
import {
  REDIS_CONNECTIONS,
  REDIS_SESSION_OPTIONS,
  SESSION_EVENT_DISPATCHER,
} from './configuration/redis-session.tokens.js';
import { SessionScripts } from './scripts/session/session.scripts.js';
import { logger } from './logging/redis-session.logger.js';

/**
 * Starts the background work when the application is complete, and ends it in the order in which nothing is lost:
 * first nothing new is begun, then the requests in flight finish (Nest closes the server in between), then the
 * handlers, then the connections.
 */
@Injectable()
export class RedisSessionLifecycle implements OnApplicationBootstrap, BeforeApplicationShutdown, OnApplicationShutdown {
  readonly #job: SessionCleanupJob;

  constructor(
    @Inject(REDIS_SESSION_OPTIONS) private readonly options: ResolvedRedisSessionOptions,
    @Inject(REDIS_CONNECTIONS) private readonly connections: RedisConnections,
    @Inject(RequestConnection) private readonly requestConnection: RequestConnection,
    @Inject(SessionPartitions) private readonly partitions: SessionPartitions,
    @Inject(SessionExpirationSweeper) private readonly sweeper: SessionExpirationSweeper,
    @Inject(ExpiredSessionListener) private readonly listener: ExpiredSessionListener,
    @Inject(KeyspaceNotificationListener) private readonly notifications: KeyspaceNotificationListener,
    @Inject(SESSION_EVENT_DISPATCHER) private readonly dispatcher: SessionEventDispatcher,
    @Inject(SessionEventConsumer) private readonly consumer: SessionEventConsumer,
    @Inject(SessionEventBroadcaster) private readonly broadcaster: SessionEventBroadcaster,
    @Inject(SessionEventTrimmer) private readonly trimmer: SessionEventTrimmer,
    // There when the application has ScheduleModule. We must not import it: a second ScheduleModule.forRoot() runs
    // every @Cron of the application twice.
    @Optional() @Inject(SchedulerRegistry) registry?: SchedulerRegistry,
  ) {
    this.#job = new SessionCleanupJob(options.cron, (signal) => this.#cleanUp(signal), registry);
  }

  async onApplicationBootstrap(): Promise<void> {
    try {
      await this.#open();
    } catch (error) {
      // Nest ends nothing of an application that did not start, and a connection keeps its process alive.
      Object.values(this.connections).forEach(closeConnection);
      throw error;
    }
    if (this.options.grace < RECOMMENDED_GRACE) {
      logger.warn('With a `grace` below 2m, sessions that end during a short outage are reported without their data');
    }
    if (this.options.notifications === 'auto') this.listener.start();
    this.notifications.start();
    this.#job.start();
    if (this.options.events.consume) this.consumer.start();
    // Also where no events of the group are handled: nobody else can do what concerns this instance.
    await settledWithin(this.options.commandTimeout, this.broadcaster.start());
  }

  async beforeApplicationShutdown(): Promise<void> {
    const { background, reader, broadcast } = this.connections;
    // Work that waits for a Redis which is not there would keep us waiting as well.
    if (background.status !== 'ready') closeConnection(background);
    this.consumer.stop();
    this.broadcaster.stop();
    closeConnection(reader);
    closeConnection(broadcast);
    void this.#limitHandlers();
    await Promise.all([
      this.#finish(Promise.all([this.#job.stop(), this.listener.stop()])),
      // Waits for handlers of the application, for as long as they take.
      this.notifications.stop(),
    ]);
  }

  async onApplicationShutdown(): Promise<void> {
    const { request, background } = this.connections;
    // The handlers themselves have finished: the dispatcher has waited for them. This is for what Redis has to hear.
    if (background.status === 'ready') await this.#finish(this.consumer.drain());
    await this.#finish(Promise.all([quit(request), quit(background)]));
    Object.values(this.connections).forEach(closeConnection);
  }

  /** From now on: the requests in flight, which finish first, may take long. */
  async #limitHandlers(): Promise<void> {
    if (await settledWithin(this.options.events.shutdownTimeout, this.dispatcher.idle())) return;
    logger.warn(
      'Handlers of session events have not finished within `events.shutdownTimeout`: other instances handle their events',
    );
    this.dispatcher.giveUp();
  }

  /** Waits for background work, unless Redis does not answer: then there is no answer to what follows either. */
  async #finish(work: Promise<unknown>): Promise<void> {
    if (!(await settledWithin(PATIENCE, work))) closeConnection(this.connections.background);
  }

  async #cleanUp(signal: AbortSignal): Promise<void> {
    const { late } = await this.sweeper.runOnce({ signal });
    if (late > 0) logger.log(`Caught up with ${late} sessions whose end nobody had noticed in time`);
    await this.trimmer.runOnce({ signal });
  }

  async #open(): Promise<void> {
    const { request, background } = this.connections;
    const preload = () => this.requestConnection.run(SessionScripts.preload).catch(() => undefined);
    background.connect().catch(() => undefined);
    await this.#connect(request);
    if (request.status === 'ready') await preload();
    if (!(await this.#isChecked())) {
      if (background.status === 'ready') void this.#checkLate();
      else background.once('ready', () => void this.#checkLate());
    }
    // With every further connection: a Redis that was restarted has forgotten the scripts.
    request.on('ready', () => void preload());
  }

  async #connect(client: Redis): Promise<void> {
    const connected = client.connect();
    if (this.options.requireAtStart) {
      await connected.catch((cause: unknown) => {
        throw new SessionStoreError('Redis cannot be reached, and `requireAtStart` is set', { cause });
      });
      return;
    }
    // OutageLog says why it failed, and ioredis goes on trying.
    await settledWithin(this.options.commandTimeout, connected);
  }

  /** False when Redis is not there, or does not answer within `commandTimeout`. */
  async #isChecked(): Promise<boolean> {
    if (this.connections.request.status !== 'ready') return false;
    try {
      await checkStore(this.requestConnection, this.partitions);
      return true;
    } catch (cause) {
      if (!(cause instanceof SessionStoreError) || isAnswer(cause.cause)) throw cause;
      if (!this.options.requireAtStart) return false;
      throw new SessionStoreError('Redis does not answer, and `requireAtStart` is set', { cause });
    }
  }

  async #checkLate(): Promise<void> {
    // The application runs by now: it can only be told.
    const { background } = this.connections;
    await checkStore({ run: (command) => command(background) }, this.partitions).catch((error: unknown) =>
      logger.error(String(error)),
    );
  }
}

const RECOMMENDED_GRACE = 120_000;
// How long the end of the application waits for a Redis that does not answer.
const PATIENCE = 5000;

/** Lets what was sent be answered; without a connection there is nothing to wait for. */
async function quit(client: Redis): Promise<void> {
  if (client.status === 'ready') await client.quit();
}
