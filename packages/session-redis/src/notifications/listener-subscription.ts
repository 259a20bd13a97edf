import type { Redis } from 'ioredis';
import type { KeyspaceNotification } from './keyspace-notification.js';
import {
  type KeyspaceGap,
  type KeyspaceHealth,
  type KeyspaceState,
  type KeyspaceSubscription,
  type KeyspaceSubscriptionOptions,
  type ResolvedSubscription,
  resolveSubscription,
} from './keyspace-subscription.options.js';
import { NotificationProbe, type ProbeResult } from './notification.probe.js';
import { NotificationQueue } from './notification.queue.js';
import { logger } from '../logging/redis-session.logger.js';
import { shownError } from '@nest-session/core/store';

/** One subscription of a listener: subscribes, checks that notifications arrive, and reports gaps and health. */
export class ListenerSubscription implements KeyspaceSubscription {
  readonly #resolved: ResolvedSubscription;
  readonly #probe: NotificationProbe;
  readonly #queue: NotificationQueue;
  #health: KeyspaceHealth = { state: 'stopped', reason: undefined, since: Date.now() };
  /** Counts lost connections: the result of a check on one says nothing about the next. */
  #gone = 0;
  #isSubscribed = false;
  /** Monotonic time. */
  #nextCheck = 0;
  #lastHeard: number | undefined;
  #isGapWaiting = false;
  #catchingUp: Promise<void> = Promise.resolve();

  constructor(
    private readonly subscriber: Redis,
    commands: Redis,
    private readonly options: KeyspaceSubscriptionOptions,
    /** Milliseconds between two checks. */
    private readonly interval: number,
    private readonly remove: (subscription: ListenerSubscription) => void,
  ) {
    this.#resolved = resolveSubscription(options, subscriber.options.db ?? 0);
    const { flags, canary, concurrency } = this.#resolved;
    this.#probe = new NotificationProbe(subscriber, commands, flags, canary);
    this.#queue = new NotificationQueue(concurrency, options.handler, options.onError);
  }

  get health(): KeyspaceHealth {
    return this.#health;
  }

  get channels(): readonly string[] {
    return this.#resolved.channels;
  }

  get patterns(): readonly string[] {
    return this.#resolved.patterns;
  }

  async close(): Promise<void> {
    this.remove(this);
    await this.stop();
  }

  /** There is no connection: it is being made, or was lost. */
  disconnected(reason?: string): void {
    this.#forgetConnection();
    this.#report('connecting', reason);
  }

  /** Resolves when running handlers have finished. */
  async stop(): Promise<void> {
    this.#forgetConnection();
    this.#report('stopped');
    await Promise.all([this.#queue.stop(), this.#catchingUp]);
  }

  receive(notification: KeyspaceNotification): void {
    const { event, key } = notification;
    if (!this.#resolved.hears(event)) return;
    if (!this.#probe.isCanary(key)) this.#queue.push(notification);
    else if (event === 'expired') this.#probe.heard(key);
  }

  /**
   * Subscribes on a new connection, and checks that notifications arrive when that is due. Never rejects. Not
   * re-entrant.
   */
  async check(): Promise<void> {
    if (performance.now() < this.#nextCheck) return;
    const gone = this.#gone;
    const isNew = !this.#isSubscribed;
    if (!isNew || (await this.#subscribe())) {
      const result = await this.#probe.run();
      if (gone === this.#gone) this.#conclude(result, isNew);
    }
    if (gone === this.#gone) this.#nextCheck = performance.now() + this.interval;
  }

  #forgetConnection(): void {
    this.#gone++;
    this.#isSubscribed = false;
    this.#nextCheck = 0;
  }

  async #subscribe(): Promise<boolean> {
    const gone = this.#gone;
    try {
      if (this.channels.length > 0) await this.subscriber.subscribe(...this.channels);
      if (this.patterns.length > 0) await this.subscriber.psubscribe(...this.patterns);
    } catch (error) {
      if (gone === this.#gone) this.#report('refused', `the channel is not allowed (${shownError(error)})`);
      return false;
    }
    this.#isSubscribed = gone === this.#gone;
    return this.#isSubscribed;
  }

  #conclude({ heard, refused, flagsWereMissing }: ProbeResult, isNew: boolean): void {
    const before = this.#health.state;
    if (heard === false) {
      // After a failover the old server may stay connected, but keys no longer expire there. A new connection finds the
      // right one.
      if (!isNew && (before === 'listening' || refused === undefined)) return this.subscriber.disconnect(true);
      this.#report('silent', refused ?? `no notification arrives, although "${this.#resolved.flags}" is set`);
    } else if (heard === undefined && refused !== undefined) {
      this.#report('unproven', refused);
    } else {
      this.#report('listening');
    }
    if (isNew || flagsWereMissing || (before === 'silent' && heard)) this.#reportGap({ since: this.#lastHeard });
    if (this.#health.state === 'listening') this.#lastHeard = Date.now();
  }

  /** One call of `onGap` at a time. A call that waits for its turn also covers the gaps that follow. */
  #reportGap(gap: KeyspaceGap): void {
    if (this.#isGapWaiting) return;
    this.#isGapWaiting = true;
    this.#catchingUp = this.#catchingUp.then(async () => {
      this.#isGapWaiting = false;
      if (this.#isStopped) return;
      try {
        await this.options.onGap?.(gap);
      } catch (error) {
        // A stop closes the connections that `onGap` uses.
        if (this.#isStopped) return;
        logger.error(`onGap of ${this.#names} failed, notifications may be missing: ${shownError(error)}`);
      }
    });
  }

  #report(state: KeyspaceState, reason?: string): void {
    if (state === this.#health.state && reason === this.#health.reason) return;
    this.#health = { state, reason, since: Date.now() };
    try {
      if (this.options.onHealth) this.options.onHealth(this.#health);
      else this.#log();
    } catch (error) {
      logger.error(`onHealth of ${this.#names} failed: ${shownError(error)}`);
    }
  }

  #log(): void {
    const { state, reason } = this.#health;
    if (state === 'listening') logger.log(`Listening to ${this.#names}`);
    else if (reason !== undefined) logger.warn(`Not listening to ${this.#names} (${state}): ${reason}`);
  }

  get #isStopped(): boolean {
    return this.#health.state === 'stopped';
  }

  get #names(): string {
    return [...this.channels, ...this.patterns].join(', ');
  }
}
