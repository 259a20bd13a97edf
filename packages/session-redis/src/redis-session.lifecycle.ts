import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  Optional,
} from '@nestjs/common';
import { SessionStoreError } from '@nest-session/core';
import { SchedulerRegistry } from '@nestjs/schedule';
import type { Redis } from 'ioredis';
import { setTimeout as pause } from 'node:timers/promises';
import type { RedisConnections } from './connection/redis.connections.js';
import { checkStore } from './connection/store.check.js';
import type { SessionEventConsumer } from './delivery/session-event.consumer.js';
import type { SessionEventTrimmer } from './delivery/session-event.trimmer.js';
import type { KeyEventListener } from './expiration/key-event.listener.js';
import { SessionCleanupJob } from './expiration/session-cleanup.job.js';
import { SessionExpirationSweeper } from './expiration/session-expiration.sweeper.js';
import type { SessionKeys } from './keys/session.keys.js';
import type { ResolvedRedisSessionOptions } from './redis-session.options.js';
import {
  KEY_EVENT_LISTENER,
  REDIS_CONNECTIONS,
  REDIS_SESSION_OPTIONS,
  SESSION_EVENT_CONSUMER,
  SESSION_EVENT_TRIMMER,
  SESSION_KEYS,
} from './redis-session.tokens.js';
import { SessionScripts } from './scripts/session.scripts.js';

/**
 * Starts the background work when the application is complete, and ends it in the order in which nothing is lost:
 * first nothing new is begun, then the requests in flight finish (Nest closes the server in between), then the
 * handlers, then the connections.
 */
@Injectable()
export class RedisSessionLifecycle implements OnApplicationBootstrap, BeforeApplicationShutdown, OnApplicationShutdown {
  readonly #logger = new Logger('RedisSession');
  readonly #job: SessionCleanupJob;

  constructor(
    @Inject(REDIS_SESSION_OPTIONS) private readonly options: ResolvedRedisSessionOptions,
    @Inject(REDIS_CONNECTIONS) private readonly connections: RedisConnections,
    @Inject(SESSION_KEYS) private readonly keys: SessionKeys,
    @Inject(SessionExpirationSweeper) private readonly sweeper: SessionExpirationSweeper,
    @Inject(KEY_EVENT_LISTENER) private readonly listener: KeyEventListener,
    @Inject(SESSION_EVENT_CONSUMER) private readonly consumer: SessionEventConsumer,
    @Inject(SESSION_EVENT_TRIMMER) private readonly trimmer: SessionEventTrimmer,
    // There when the application has ScheduleModule. We must not import it: a second ScheduleModule.forRoot() runs
    // every @Cron of the application twice.
    @Optional() @Inject(SchedulerRegistry) registry?: SchedulerRegistry,
  ) {
    this.#job = new SessionCleanupJob(options.cron, () => this.#cleanUp(), registry);
  }

  async onApplicationBootstrap(): Promise<void> {
    const { request, background } = this.connections;
    // With every connection: a Redis that was restarted has forgotten the scripts.
    request.on('ready', () => void SessionScripts.preload(request).catch(() => undefined));
    await this.#connect(request);
    void background.connect().catch(() => undefined);
    if (request.status === 'ready') {
      await SessionScripts.preload(request).catch(() => undefined);
      await checkStore(request, this.keys);
    } else {
      background.once('ready', () => void this.#checkLate());
    }
    if (this.options.grace < RECOMMENDED_GRACE) {
      this.#logger.warn(
        'With a `grace` below 2m a session that ends during a short outage is reported without its data',
      );
    }
    if (this.options.notifications === 'auto') this.listener.start();
    this.#job.start();
    if (this.options.events.consume) this.consumer.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all([this.#job.stop(), this.listener.stop()]);
    this.connections.subscriber.disconnect();
    // Ends its wait for events.
    this.connections.reader.disconnect();
    await this.consumer.stop();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.consumer.drain();
    const { request, background } = this.connections;
    await Promise.all([close(request), close(background)]);
  }

  async #cleanUp(): Promise<void> {
    await this.sweeper.runOnce();
    await this.trimmer.runOnce();
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
    const patience = new AbortController();
    const { signal } = patience;
    await Promise.race([connected.catch(() => undefined), pause(this.options.commandTimeout, undefined, { signal })]);
    patience.abort();
  }

  async #checkLate(): Promise<void> {
    // The application runs by now: it can only be told.
    await checkStore(this.connections.background, this.keys).catch((error: unknown) =>
      this.#logger.error(String(error)),
    );
  }
}

const RECOMMENDED_GRACE = 120_000;

async function close(client: Redis): Promise<void> {
  // quit() lets what was sent be answered; without a connection there is nothing to wait for.
  if (client.status === 'ready') await client.quit().catch(() => undefined);
  client.disconnect();
}
