import type { FactoryProvider } from '@nestjs/common';
import { shownError } from '@nest-session/core/internal';
import { PollingLoop } from '@nest-session/core/store';
import type { Redis } from 'ioredis';
import { connectionToken, type RedisConnections } from '../connection/redis-connections.js';
import type { RedisNodes } from '../connection/redis-nodes.js';
import { logger } from '../logging/failure.log.js';
import {
  type KeyspaceGap,
  type KeyspaceHealth,
  type KeyspaceNotification,
  type KeyspaceState,
  type KeyspaceSubscription,
  type KeyspaceSubscriptionOptions,
  type ResolvedSubscription,
  resolveSubscription,
} from './keyspace-subscription.options.js';
import { type NodeReports, NodeSubscription } from './missed-notifications.js';

export interface ListenerPace {
  /** The time between two PINGs. */
  readonly heartbeat: number;
  /** The time between two checks that notifications arrive. */
  readonly probe: number;
}

const PACE: ListenerPace = { heartbeat: 10_000, probe: 60_000 };

/**
 * Listens to key events of Redis: a key was set, was deleted or has expired. `RedisEventsModule` and
 * `RedisSessionModule` provide it for injection, and start and stop it. It connects at the first `listen()`. Every
 * instance gets every notification, but they are best effort, and lost during an outage or while
 * `notify-keyspace-events` lacks a flag. The listener sets the flags if CONFIG is allowed, replaces dead connections,
 * notices when Redis is silent, and calls `onGap` when notifications may be missing.
 */
export class KeyspaceNotificationListener {
  readonly #subscriptions = new Set<ListenerSubscription>();
  readonly #subscribers = new Set<Redis>();
  readonly #beats: PollingLoop;
  #state: 'new' | 'running' | 'stopped' = 'new';
  #isConnected = false;

  /** @internal Inject it. */
  constructor(
    /** Connections for the listener alone, with `autoResubscribe: false`: that of ioredis can end the process. */
    private readonly nodes: RedisNodes,
    /** The connection for CONFIG and canaries. Before RESP3, a subscribed connection accepts no other commands. */
    private readonly commands: Redis,
    private readonly pace: ListenerPace = PACE,
  ) {
    this.#beats = new PollingLoop('The heartbeat of key events', pace.heartbeat, async () => this.#beat());
  }

  /**
   * Subscribes, from the start of the application on, until you close the subscription; on a Cluster, to every primary.
   * @throws InvalidSessionOptionsError that names all problems at once
   */
  listen(options: KeyspaceSubscriptionOptions): KeyspaceSubscription {
    const [node] = this.nodes.all;
    const subscription = new ListenerSubscription(options, node?.options.db ?? 0, this.pace.probe, () => {
      this.#subscriptions.delete(subscription);
      return [...this.#subscriptions];
    });
    this.#subscriptions.add(subscription);
    if (this.#state === 'running') this.#begin(subscription);
    return subscription;
  }

  /** The health of the subscription with the worst state. */
  get health(): KeyspaceHealth {
    const [worst] = worstFirst([...this.#subscriptions].map(({ health }) => health));
    return worst ?? { state: 'stopped', reason: undefined, since: 0 };
  }

  /** Called by `RedisSessionModule`. After `stop()` it does nothing. */
  start(): void {
    if (this.#state !== 'new') return;
    this.#state = 'running';
    this.#beats.start();
    for (const subscription of this.#subscriptions) this.#begin(subscription);
  }

  /** Called by `RedisSessionModule`. Closes the connections, and resolves when no handler runs. */
  async stop(): Promise<void> {
    this.#state = 'stopped';
    void this.nodes.close();
    await Promise.all([this.#beats.stop(), ...[...this.#subscriptions].map((subscription) => subscription.stop())]);
  }

  #begin(subscription: ListenerSubscription): void {
    subscription.start();
    for (const subscriber of this.#subscribers) subscription.addNode(subscriber, this.nodes, this.commands);
    if (this.#isConnected) return;
    this.#isConnected = true;
    this.nodes.onOpen((subscriber) => this.#add(subscriber));
    this.nodes.connect().catch(() => undefined);
  }

  #add(subscriber: Redis): void {
    if (this.#state !== 'running') return;
    this.#subscribers.add(subscriber);
    for (const subscription of this.#subscriptions) subscription.addNode(subscriber, this.nodes, this.commands);
    subscriber.once('end', () => {
      this.#subscribers.delete(subscriber);
      for (const subscription of this.#subscriptions) subscription.removeNode(subscriber);
    });
  }

  /** TCP notices a vanished peer only when something is sent; the timeout of the socket then misses the reply. */
  #beat(): void {
    for (const subscriber of this.#subscribers)
      if (subscriber.status === 'ready') subscriber.ping().catch(() => undefined);
    for (const subscription of this.#subscriptions) subscription.check();
  }
}

export function keyEventListener(
  provide: symbol | typeof KeyspaceNotificationListener,
  name: keyof RedisConnections,
): FactoryProvider<KeyspaceNotificationListener> {
  return {
    provide,
    inject: [connectionToken(name), connectionToken('background')],
    useFactory: (nodes: RedisNodes, commands: Redis) => new KeyspaceNotificationListener(nodes, commands),
  };
}

const WORST_FIRST: readonly KeyspaceState[] = ['refused', 'silent', 'connecting', 'unproven', 'listening', 'stopped'];

function worstFirst<T extends { readonly state: KeyspaceState }>(all: readonly T[]): T[] {
  return all.toSorted((a, b) => WORST_FIRST.indexOf(a.state) - WORST_FIRST.indexOf(b.state));
}

export class ListenerSubscription implements KeyspaceSubscription, NodeReports {
  readonly #resolved: ResolvedSubscription;
  readonly #queue: NotificationQueue;
  readonly #parts = new Map<Redis, NodeSubscription>();
  #health: KeyspaceHealth = { state: 'stopped', reason: undefined, since: Date.now() };
  #isRunning = false;
  #gap: KeyspaceGap | undefined;
  #catchingUp: Promise<void> = Promise.resolve();

  constructor(
    private readonly options: KeyspaceSubscriptionOptions,
    database: number,
    /** Milliseconds between two checks. */
    private readonly interval: number,
    /** Forgets it. Returns those that are left. */
    private readonly remove: () => readonly ListenerSubscription[],
  ) {
    this.#resolved = resolveSubscription(options, database);
    for (const event of this.#resolved.unknown) {
      logger.warn(
        `Redis 7 has no key event ${JSON.stringify(event)}: unless a later Redis or a module of it has, the handler of ` +
          'listen() does not hear of it. The name decides nothing about the flags, so Redis sends events of all kinds',
      );
    }
    this.#queue = new NotificationQueue(this.#resolved.concurrency, options.handler, options.onError);
  }

  get health(): KeyspaceHealth {
    return this.#health;
  }

  start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.changed();
  }

  addNode(subscriber: Redis, nodes: Pick<RedisNodes, 'of'>, commands: Redis): void {
    const others = [...this.#parts.values()].map(({ lastHeard }) => lastHeard).filter((at) => at !== undefined);
    const lastHeard = others.length > 0 ? Math.min(...others) : undefined;
    const part = new NodeSubscription(subscriber, nodes, commands, this.#resolved, this, this.interval, lastHeard);
    this.#parts.set(subscriber, part);
    this.changed();
    part.start();
  }

  removeNode(subscriber: Redis): void {
    this.#parts.get(subscriber)?.stop();
    this.#parts.delete(subscriber);
    this.changed();
  }

  check(): void {
    for (const part of this.#parts.values()) void part.check();
  }

  async close(): Promise<void> {
    const others = this.remove().map((other) => other.#resolved);
    for (const part of this.#parts.values()) part.leave(others);
    await this.stop();
  }

  async stop(): Promise<void> {
    this.#isRunning = false;
    for (const part of this.#parts.values()) part.stop();
    this.#parts.clear();
    this.changed();
    await Promise.all([this.#queue.stop(), this.#catchingUp]);
  }

  receive(notification: KeyspaceNotification): void {
    if (this.#isRunning) this.#queue.push(notification);
  }

  changed(): void {
    const { state, reason } = this.#worst();
    if (state === this.#health.state && reason === this.#health.reason) return;
    this.#health = { state, reason, since: Date.now() };
    try {
      if (this.options.onHealth) this.options.onHealth(this.#health);
      else this.#log();
    } catch (error) {
      logger.error(`onHealth of ${this.#names} failed: ${shownError(error)}`);
    }
  }

  /** One call at a time. A waiting call also covers the gaps that follow. */
  missed(since: number | undefined): void {
    const waiting = this.#gap;
    // Undefined is the earliest of all.
    const isEarlier = since === undefined || (waiting?.since !== undefined && since < waiting.since);
    if (!waiting || isEarlier) this.#gap = { since };
    if (waiting) return;
    this.#catchingUp = this.#catchingUp.then(async () => {
      const gap = this.#gap!;
      this.#gap = undefined;
      if (!this.#isRunning) return;
      try {
        await this.options.onGap?.(gap);
      } catch (error) {
        // stop() closes the connections that `onGap` uses, so a failure after it is not logged.
        if (!this.#isRunning) return;
        logger.error(`onGap of ${this.#names} failed, so notifications may be missing: ${shownError(error)}`);
      }
    });
  }

  #worst(): { readonly state: KeyspaceState; readonly reason: string | undefined } {
    if (!this.#isRunning) return { state: 'stopped', reason: undefined };
    const [worst] = worstFirst([...this.#parts.values()]);
    return worst ?? { state: 'connecting', reason: undefined };
  }

  #log(): void {
    const { state, reason } = this.#health;
    if (state === 'listening') logger.log(`Listening to ${this.#names}`);
    else if (reason !== undefined) logger.warn(`Not listening to ${this.#names} (${state}): ${reason}`);
  }

  get #names(): string {
    return [...this.#resolved.channels, ...this.#resolved.patterns].join(', ');
  }
}

// Notifications for a slow handler must not fill the memory.
const LONGEST_QUEUE = 10_000;

class NotificationQueue {
  readonly #running = new Set<Promise<void>>();
  #waiting: KeyspaceNotification[] = [];
  /** The error of all notifications of one overflow, so that the log gets one line for it. */
  #overflow: Error | undefined;
  #logged: unknown;

  constructor(
    private readonly concurrency: number,
    private readonly handler: (notification: KeyspaceNotification) => unknown,
    /** Called with each notification that was not handled. */
    private readonly onError: (error: unknown, notification: KeyspaceNotification) => unknown = (error, { event }) =>
      this.#log(error, event),
  ) {}

  push(notification: KeyspaceNotification): void {
    if (this.#running.size < this.concurrency) this.#begin(notification);
    else if (this.#waiting.length < LONGEST_QUEUE) this.#waiting.push(notification);
    else {
      this.#overflow ??= new Error(`${LONGEST_QUEUE} notifications are already waiting: the handler is too slow`);
      void this.#fail(this.#overflow, notification);
    }
  }

  async stop(): Promise<void> {
    const left = this.#waiting;
    const stopped = new Error('The listener stopped before the handler was called');
    this.#waiting = [];
    await Promise.all(left.map((notification) => this.#fail(stopped, notification)));
    await Promise.all(this.#running);
  }

  #begin(notification: KeyspaceNotification): void {
    const handled = (async () => this.handler(notification))();
    const running = handled
      .then(
        () => undefined,
        (error: unknown) => this.#fail(error, notification),
      )
      .finally(() => {
        this.#running.delete(running);
        const next = this.#waiting.shift();
        if (next) this.#begin(next);
        else this.#overflow = undefined;
      });
    this.#running.add(running);
  }

  async #fail(error: unknown, notification: KeyspaceNotification): Promise<void> {
    try {
      await this.onError(error, notification);
    } catch (failure) {
      logger.error(`onError of ${JSON.stringify(notification.event)} failed: ${shownError(failure)}`);
    }
  }

  #log(error: unknown, event: string): void {
    if (error !== this.#logged) {
      logger.error(`A notification of ${JSON.stringify(event)} was not handled: ${shownError(error)}`);
    }
    this.#logged = error;
  }
}
