import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  Optional,
} from '@nestjs/common';
import { SessionStoreError } from '@nest-session/core';
import { PollingLoop, type SessionEventDispatcher } from '@nest-session/core/store';
import { SchedulerRegistry } from '@nestjs/schedule';
import type { Redis } from 'ioredis';
import { settledWithin } from './timing/settled-within.js';
import { closeConnection } from './connection/close-connection.js';
import { closeConnections, type RedisConnections } from './connection/redis-connections.js';
import type { RequestNodes } from './connection/redis-nodes.js';
import { isAnswer } from './connection/reply.errors.js';
import { PartitionSignals } from './connection/partition-signals.js';
import { RequestConnection } from './connection/request.connection.js';
import { checkStore } from './connection/check-store.js';
import { LivingInstances, SIGN_INTERVAL } from './connection/living-instances.js';
import { SessionEventBroadcaster } from './delivery/session-event.broadcaster.js';
import { SessionEventConsumer } from './delivery/session-event.consumer.js';
import { DueSessionPoller } from './expiration/due-session-poller.js';
import { ExpiredSessionListener } from './expiration/expired-session.listener.js';
import { SessionCleanupJob } from './expiration/session-cleanup.job.js';
import { TimedSessionListener } from './expiration/timed-session.listener.js';
import { OlderSessionSweeper } from './expiration/older-session.sweeper.js';
import { SessionPartitions } from './keys/session-partitions.js';
import { KeyspaceNotificationListener } from './notifications/keyspace-notification.listener.js';
import type { ResolvedRedisSessionOptions } from './configuration/redis-session.options.js';
import {
  REDIS_CONNECTIONS,
  REDIS_SESSION_OPTIONS,
  SESSION_EVENT_DISPATCHER,
} from './configuration/redis-session.tokens.js';
import { SessionCleanup } from './session-cleanup.js';
import { logger } from './logging/redis-session.logger.js';

/**
 * Starts the background work when the application is complete, and ends it in the order that loses nothing: it begins
 * nothing new, lets requests in flight finish (Nest closes the server in between), then handlers, then closes
 * connections.
 */
@Injectable()
export class RedisSessionLifecycle implements OnApplicationBootstrap, BeforeApplicationShutdown, OnApplicationShutdown {
  readonly #job: SessionCleanupJob;
  // What fails, such as a ZADD when Redis is out of memory, is done again with the next one.
  readonly #signing = new PollingLoop('The sign of life', SIGN_INTERVAL, () =>
    this.instances.sign().catch(() => undefined),
  );

  constructor(
    @Inject(REDIS_SESSION_OPTIONS) private readonly options: ResolvedRedisSessionOptions,
    @Inject(REDIS_CONNECTIONS) private readonly connections: RedisConnections,
    @Inject(RequestConnection) private readonly requestConnection: RequestConnection,
    @Inject(SessionPartitions) private readonly partitions: SessionPartitions,
    @Inject(OlderSessionSweeper) private readonly olderSweeper: OlderSessionSweeper,
    @Inject(ExpiredSessionListener) private readonly listener: ExpiredSessionListener,
    @Inject(TimedSessionListener) private readonly timedSessions: TimedSessionListener,
    @Inject(DueSessionPoller) private readonly poller: DueSessionPoller,
    @Inject(KeyspaceNotificationListener) private readonly notifications: KeyspaceNotificationListener,
    @Inject(SESSION_EVENT_DISPATCHER) private readonly dispatcher: SessionEventDispatcher,
    @Inject(SessionEventConsumer) private readonly consumer: SessionEventConsumer,
    @Inject(SessionEventBroadcaster) private readonly broadcaster: SessionEventBroadcaster,
    @Inject(SessionCleanup) cleanup: SessionCleanup,
    @Inject(PartitionSignals) private readonly signals: PartitionSignals,
    @Inject(LivingInstances) private readonly instances: LivingInstances,
    // Present when the application imports ScheduleModule. This package must not import it: a second
    // ScheduleModule.forRoot() would run every @Cron of the application twice.
    @Optional() @Inject(SchedulerRegistry) registry?: SchedulerRegistry,
  ) {
    this.#job = new SessionCleanupJob(options.cron, cleanup, registry);
  }

  async onApplicationBootstrap(): Promise<void> {
    try {
      await this.#open();
      await this.timedSessions.start();
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
    if (this.options.notifications === 'auto') this.listener.start();
    this.notifications.start();
    this.signals.start();
    this.#signing.start();
    this.#job.start();
    if (this.options.expirations.store === 'sorted-set') this.poller.start();
    this.olderSweeper.start();
    const handling = this.options.events.consume ? this.consumer.start() : undefined;
    // Even without `events.consume`: no other instance can call the broadcast handlers of this one.
    await settledWithin(this.options.commandTimeout, Promise.all([handling, this.broadcaster.start()]));
  }

  async beforeApplicationShutdown(): Promise<void> {
    const { background } = this.connections;
    // Background work would wait for Redis, and the shutdown for the work.
    if (background.status !== 'ready') void closeConnection(background);
    this.consumer.stop();
    this.broadcaster.stop();
    void this.#limitHandlers();
    await Promise.all([
      this.#finish(
        Promise.all([
          this.#job.stop(),
          this.listener.stop(),
          this.timedSessions.stop(),
          this.poller.stop(),
          this.olderSweeper.stop(),
          this.signals.stop(),
          this.#signing.stop(),
        ]),
      ),
      // Waits for handlers of the application, however long they take.
      this.notifications.stop(),
    ]);
  }

  async onApplicationShutdown(): Promise<void> {
    const { request, writes, background } = this.connections;
    // The dispatcher has waited for the handlers. This waits until Redis knows their results.
    if (background.status === 'ready') {
      await this.#finish(this.consumer.drain());
      await this.#finish(this.instances.leave({ run: (command) => command(background) }).catch(() => undefined));
    }
    await this.#finish(Promise.all([...new Set([...request.all, ...writes.all, background])].map(quit)));
    void closeConnections(this.connections);
  }

  /** The time begins now, not when the requests in flight have finished, which may take long. */
  async #limitHandlers(): Promise<void> {
    if (await settledWithin(this.options.events.shutdownTimeout, this.dispatcher.idle())) return;
    logger.warn(
      'Handlers of session events have not finished within `events.shutdownTimeout`: other instances will handle ' +
        'their events again',
    );
    this.dispatcher.giveUp();
  }

  /**
   * Waits for background work. When Redis does not reply in time, closes its connection: later commands get no reply
   * either.
   */
  async #finish(work: Promise<unknown>): Promise<void> {
    if (!(await settledWithin(PATIENCE, work))) void closeConnection(this.connections.background);
  }

  async #open(): Promise<void> {
    const { request, writes, background } = this.connections;
    background.connect().catch(() => undefined);
    await this.#connect(new Set([request, writes]));
    if (!(await this.#isChecked())) {
      if (background.status === 'ready') void this.#checkLate();
      else background.once('ready', () => void this.#checkLate());
    }
  }

  async #connect(all: ReadonlySet<RequestNodes>): Promise<void> {
    const connected = Promise.all([...all].map((nodes) => nodes.connect()));
    if (this.options.requireAtStart) {
      const refuse = (cause?: unknown): never => {
        throw new SessionStoreError('Redis cannot be reached, and option `requireAtStart` is set', { cause });
      };
      // A Cluster and Sentinels are asked again and again.
      if (!(await settledWithin(LONGEST_START, connected))) refuse();
      await connected.catch(refuse);
      return;
    }
    // On failure, OutageLog logs the reason and ioredis retries.
    await settledWithin(this.options.commandTimeout, connected);
  }

  /** False when Redis cannot be reached, or does not reply within `commandTimeout`. */
  async #isChecked(): Promise<boolean> {
    if (this.connections.request.of(undefined)?.status !== 'ready') return false;
    try {
      // In this order: whoever moves the sessions to other partitions records that before he looks for instances.
      await this.instances.sign().catch(unlessAnswered);
      await checkStore(this.requestConnection, this.partitions);
      return true;
    } catch (cause) {
      if (!(cause instanceof SessionStoreError) || isAnswer(cause.cause)) {
        await this.instances.leave().catch(() => undefined);
        throw cause;
      }
      if (!this.options.requireAtStart) return false;
      throw new SessionStoreError('Redis does not reply, and option `requireAtStart` is set', { cause });
    }
  }

  async #checkLate(): Promise<void> {
    // The application already runs, so an error can only be logged.
    const { background } = this.connections;
    await this.instances.sign().catch(() => undefined);
    await checkStore({ run: (command) => command(background) }, this.partitions).catch((error: unknown) =>
      logger.error(String(error)),
    );
  }
}

const RECOMMENDED_GRACE = 120_000;
// Milliseconds that a start waits for a Redis that it requires.
const LONGEST_START = 10_000;
// Milliseconds that a shutdown waits for background work.
const PATIENCE = 5000;

/** Without a sign of life, as on a Redis that is out of memory, an instance starts all the same. */
function unlessAnswered(error: unknown): void {
  if (!(error instanceof SessionStoreError) || !isAnswer(error.cause)) throw error;
}

/** Waits for the replies to what was sent; without a connection there are none. */
async function quit(client: Redis): Promise<void> {
  if (client.status === 'ready') await client.quit();
}
