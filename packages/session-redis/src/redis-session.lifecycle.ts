import { Inject, Injectable, Optional } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { type ResolvedSessionOptions, SESSION_OPTIONS } from '@nest-session/core/store';
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
  shownAddress,
  StoreConnections,
  StoreLifecycle,
  StoreStartLog,
  VERSION,
} from '@nest-session/redis-events/internal';
import type { ResolvedRedisSessionOptions } from './configuration/redis-session.options.js';
import { REDIS_SESSION_OPTIONS } from './configuration/redis-session.tokens.js';
import { shownDetails, shownFacts } from './configuration/start-facts.js';
import { ExpiredSessionListener } from './expiration/expired-session.listener.js';
import { TimedSessions } from './expiration/timed-sessions.js';
import { OlderSessionSweeper, SessionEpochsListener } from './repository/session-epochs.js';

/** What runs in the background, in the order in which it begins. */
function servicesOf({ notifications, expirations }: ResolvedRedisSessionOptions): ServicesOfStore {
  return {
    foundation: [StoreConnections, LivingInstances],
    sources: [
      TimedSessions,
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

/** Says what runs, as soon as Redis has told its version and whether it announces sessions. */
@Injectable()
export class StartLog extends StoreStartLog {
  #notifications: string;

  constructor(
    @Inject(REDIS_SESSION_OPTIONS) private readonly options: ResolvedRedisSessionOptions,
    // Optional, so that the error names the missing module.
    @Optional() @Inject(SESSION_OPTIONS) private readonly sessions: ResolvedSessionOptions,
    @Inject(REDIS_CONNECTIONS) connections: RedisConnections,
    @Inject(ExpiredSessionListener) private readonly expired: Pick<ExpiredSessionListener, 'firstState'>,
  ) {
    super(connections);
    this.#notifications = options.notifications === 'off' ? 'off' : 'connecting';
  }

  protected override async ask(): Promise<void> {
    if (this.options.notifications === 'auto') this.#notifications = await this.expired.firstState;
  }

  protected tell(server: string): void {
    const { options, sessions } = this;
    const { store, timer } = options.expirations;
    const facts = shownFacts(options, sessions, {
      partitions: options.partitions,
      expirations: store + (timer ? ' with a timer' : ''),
      notifications: this.#notifications,
    });
    const details = shownDetails(options, sessions);
    logger.log(`nest-session ${VERSION} keeps sessions in ${server}: ${shownAddress(options.connection)}; ${facts}`);
    logger.verbose(`Options that are in effect, on Node.js ${process.version}: ${details}`);
  }
}
