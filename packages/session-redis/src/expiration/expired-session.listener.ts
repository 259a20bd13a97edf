import { Inject, Injectable } from '@nestjs/common';
import type { ResolvedRedisSessionOptions } from '../configuration/redis-session.options.js';
import {
  BACKGROUND_SESSION_SCRIPTS,
  REDIS_SESSION_OPTIONS,
  SHADOW_KEY_LISTENER,
} from '../configuration/redis-session.tokens.js';
import type { SessionKeys } from '../keys/session-keys.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import type { KeyspaceNotificationListener } from '../notifications/keyspace-notification.listener.js';
import type {
  KeyspaceGap,
  KeyspaceHealth,
  KeyspaceSubscription,
} from '../notifications/keyspace-subscription.options.js';
import type { SessionScripts } from '../scripts/session/session.scripts.js';
import { logger } from '../logging/redis-session.logger.js';
import { SessionExpirationSweeper } from './session-expiration.sweeper.js';

// Every instance hears every event, so a claim for each would cost Redis more than the sweep they save. Not the same
// for all instances: what the first has claimed costs the others little.
const SHORTEST_COLLECTION = 50;
const LONGEST_COLLECTION = 100;

const MINUTE = 60_000;

/**
 * Hears from Redis that shadow keys have expired, and has the ends of their sessions recorded at once instead of at the
 * next sweep. It only makes things faster: what it misses, or what cannot be announced at all, the sweeper finds.
 */
@Injectable()
export class ExpiredSessionListener {
  readonly #batchSize: number;
  readonly #due = new Set<string>();
  readonly #stopping = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  /** Hears what expires of everybody, where Redis announces nothing else and may not be told to. */
  #substitute: KeyspaceSubscription | undefined;
  #claiming: Promise<void> = Promise.resolve();

  constructor(
    @Inject(SHADOW_KEY_LISTENER) private readonly notifications: KeyspaceNotificationListener,
    @Inject(BACKGROUND_SESSION_SCRIPTS) private readonly scripts: SessionScripts,
    @Inject(SessionPartitions) private readonly partitions: SessionPartitions,
    @Inject(REDIS_SESSION_OPTIONS) { batchSize }: Pick<ResolvedRedisSessionOptions, 'batchSize'>,
    @Inject(SessionExpirationSweeper) private readonly sweeper: Pick<SessionExpirationSweeper, 'runOnce'>,
  ) {
    this.#batchSize = batchSize;
  }

  start(): void {
    this.notifications.listen({
      // Not the channel of the event, `expired`: on it arrives what expires of all other applications as well. With four
      // instances, each foreign key then costs Redis 1.1 microseconds instead of 0.6, and every instance 2.1 and 107
      // bytes instead of nothing; 300,000 at once overflow the output buffer.
      keys: this.partitions.shadows,
      events: 'expired',
      canary: this.partitions.canary,
      handler: ({ key }) => this.#collect(key),
      onGap: (gap) => this.#catchUp(gap),
      onHealth: (health) => this.#report(health),
    });
    this.notifications.start();
  }

  /** Resolves when the claims that were sent have been answered. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    clearTimeout(this.#timer);
    this.#due.clear();
    await Promise.all([this.notifications.stop(), this.#claiming]);
  }

  #collect(shadow: string): void {
    const id = this.partitions.idOfShadow(shadow);
    if (id === undefined || this.#stopping.signal.aborted) return;
    this.#due.add(id);
    const collection = SHORTEST_COLLECTION + Math.random() * (LONGEST_COLLECTION - SHORTEST_COLLECTION);
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#claiming = this.#claiming.then(() => this.#claim());
    }, collection).unref();
  }

  async #claim(): Promise<void> {
    const due = [...this.#due];
    this.#due.clear();
    try {
      for (let i = 0; i < due.length; i += this.#batchSize) {
        await this.#claimBatch(due.slice(i, i + this.#batchSize));
      }
    } catch (error) {
      logger.warn(`Expired sessions are left to the cleanup job: ${String(error)}`);
    }
  }

  /** A call for each of their partitions. */
  async #claimBatch(ids: readonly string[]): Promise<void> {
    const members = new Map<SessionKeys, string[]>();
    for (const id of ids) {
      const partition = this.partitions.of(id);
      members.set(partition, [...(members.get(partition) ?? []), partition.memberOf(id)]);
    }
    await Promise.all([...members].map(([partition, of]) => this.scripts.claimExpired(partition, of)));
  }

  async #catchUp({ since }: KeyspaceGap): Promise<void> {
    // The current minute included: its bucket holds what has ended while nobody listened.
    const { claimed } = await this.sweeper.runOnce({ ahead: MINUTE, signal: this.#stopping.signal });
    if (claimed > 0 || since !== undefined) logger.log(`Caught up with ${claimed} sessions that nobody had heard of`);
  }

  #report({ state, reason }: KeyspaceHealth): void {
    if (state === 'listening') {
      logger.log('Redis announces expired sessions');
      void this.#substitute?.close();
      this.#substitute = undefined;
    } else if (reason !== undefined) {
      logger.warn(`Redis does not announce expired sessions, the cleanup job finds them: ${reason}`);
      if (state === 'silent' || state === 'refused') this.#substitute ??= this.#listenToAll();
    }
  }

  /** `Ex` is what others ask operators to set, Spring Session among them. */
  #listenToAll(): KeyspaceSubscription {
    return this.notifications.listen({
      events: 'expired',
      canary: this.partitions.canary,
      handler: ({ key }) => this.#collect(key),
      onGap: (gap) => this.#catchUp(gap),
      onHealth: ({ state }) => {
        if (state === 'listening') logger.log('Redis announces expired keys, sessions among them');
      },
    });
  }
}
