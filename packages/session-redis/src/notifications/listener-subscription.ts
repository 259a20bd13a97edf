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
import { NotificationProbe, type ProofResult } from './notification.probe.js';
import { NotificationQueue } from './notification.queue.js';
import { logger } from '../logging/redis-session.logger.js';

/** One subscription of a listener: subscribes, proves that it hears, and tells when it may not have. */
export class ListenerSubscription implements KeyspaceSubscription {
  readonly #resolved: ResolvedSubscription;
  readonly #proof: NotificationProbe;
  readonly #queue: NotificationQueue;
  #health: KeyspaceHealth = { state: 'stopped', reason: undefined, since: Date.now() };
  /** Counts the connections that have gone: what was found out on one says nothing about the next. */
  #gone = 0;
  #isSubscribed = false;
  /** By the steady clock of the process. */
  #nextCheck = 0;
  #lastProved: number | undefined;
  #isGapWaiting = false;
  #catchingUp: Promise<void> = Promise.resolve();

  constructor(
    private readonly subscriber: Redis,
    commands: Redis,
    private readonly options: KeyspaceSubscriptionOptions,
    /** Milliseconds between two proofs. */
    private readonly interval: number,
    private readonly remove: (subscription: ListenerSubscription) => void,
  ) {
    this.#resolved = resolveSubscription(options, subscriber.options.db ?? 0);
    const { flags, canary, concurrency } = this.#resolved;
    this.#proof = new NotificationProbe(subscriber, commands, flags, canary);
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

  /** A connection is being made, or has gone and is being made again. */
  disconnected(reason?: string): void {
    this.#forgetConnection();
    this.#report('connecting', reason);
  }

  /** Resolves when what is running has finished. */
  async stop(): Promise<void> {
    this.#forgetConnection();
    this.#report('stopped');
    await Promise.all([this.#queue.stop(), this.#catchingUp]);
  }

  receive(notification: KeyspaceNotification): void {
    const { event, key } = notification;
    if (!this.#resolved.hears(event)) return;
    if (!this.#proof.isCanary(key)) this.#queue.push(notification);
    else if (event === 'expired') this.#proof.heard(key);
  }

  /** Subscribes on a new connection, and proves what is due to be proved. Never rejects; not to be called twice at a time. */
  async check(): Promise<void> {
    if (performance.now() < this.#nextCheck) return;
    const gone = this.#gone;
    const isNew = !this.#isSubscribed;
    if (!isNew || (await this.#subscribe())) {
      const result = await this.#proof.run();
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
      if (gone === this.#gone) this.#report('refused', `the channel is not allowed (${String(error)})`);
      return false;
    }
    this.#isSubscribed = gone === this.#gone;
    return this.#isSubscribed;
  }

  #conclude({ heard, refused, flagsWereMissing }: ProofResult, isNew: boolean): void {
    const before = this.#health.state;
    if (heard === false) {
      // It may lead to a server that is no longer the one where keys expire. A new one will not.
      if (!isNew && (before === 'listening' || refused === undefined)) return this.subscriber.disconnect(true);
      this.#report('silent', refused ?? `nothing arrives, although "${this.#resolved.flags}" is set`);
    } else if (heard === undefined && refused !== undefined) {
      this.#report('unproven', refused);
    } else {
      this.#report('listening');
    }
    if (isNew || flagsWereMissing || (before === 'silent' && heard)) this.#tellOfGap({ since: this.#lastProved });
    if (this.#health.state === 'listening') this.#lastProved = Date.now();
  }

  /** One call at a time. What comes while one waits for its turn is covered by that one. */
  #tellOfGap(gap: KeyspaceGap): void {
    if (this.#isGapWaiting) return;
    this.#isGapWaiting = true;
    this.#catchingUp = this.#catchingUp.then(async () => {
      this.#isGapWaiting = false;
      if (this.#isStopped) return;
      try {
        await this.options.onGap?.(gap);
      } catch (error) {
        // Whoever stops it closes what it looks things up with.
        if (this.#isStopped) return;
        logger.error(`What may have been missed of ${this.#names} was not looked up: ${String(error)}`);
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
      logger.error(`The health handler of ${this.#names} has failed: ${String(error)}`);
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
