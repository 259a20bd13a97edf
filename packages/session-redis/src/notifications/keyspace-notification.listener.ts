import type { Redis } from 'ioredis';
import { InvalidSessionOptionsError } from '@nest-session/core';
import { closeConnection } from '../connection/close-connection.js';
import { isCluster } from '../connection/node-with.js';
import { type KeyspaceNotification, toKeyspaceNotification } from './keyspace-notification.js';
import type {
  KeyspaceHealth,
  KeyspaceState,
  KeyspaceSubscription,
  KeyspaceSubscriptionOptions,
} from './keyspace-subscription.options.js';
import { ListenerSubscription } from './listener-subscription.js';

/** Milliseconds. */
export interface ListenerPace {
  /** Between two PINGs. */
  readonly heartbeat: number;
  /** Between two probes of whether notifications arrive. */
  readonly probe: number;
}

const PACE: ListenerPace = { heartbeat: 10_000, probe: 60_000 };

const NO_CLUSTER = 'Key events are not available on Redis Cluster: there, each node announces only its own keys.';

const WORST_FIRST: readonly KeyspaceState[] = ['refused', 'silent', 'connecting', 'unproven', 'listening', 'stopped'];

/**
 * Listens to key events of Redis: a key was set, was deleted, has expired. Inject it: `RedisSessionModule` provides it,
 * and starts and stops it with the application. It connects with the first `listen()`.
 *
 * Notifications are fast, but best effort. Those that Redis sends during an outage, or while `notify-keyspace-events`
 * lacks a flag, are lost. The listener sets the flags where CONFIG is allowed, replaces dead connections, notices when
 * Redis is silent, and calls `onGap` when notifications may be missing. Every instance gets every notification.
 */
export class KeyspaceNotificationListener {
  readonly #subscriptions = new Set<ListenerSubscription>();
  #state: 'new' | 'running' | 'stopped' = 'new';
  #heartbeat: NodeJS.Timeout | undefined;
  #isChecking = false;
  #isCheckDue = false;
  readonly #onMessage = (channel: string, message: string) =>
    this.#pass(channel, toKeyspaceNotification(channel, message));
  readonly #onPatternMessage = (pattern: string, channel: string, message: string) =>
    this.#pass(pattern, toKeyspaceNotification(channel, message, pattern));
  readonly #onReady = () => void this.#check();
  readonly #onClose = () => {
    for (const subscription of this.#subscriptions) subscription.disconnected('there is no connection to Redis');
  };

  /** @internal `RedisSessionModule` does this: inject the listener. */
  constructor(
    /** Only the listener uses it. With `autoResubscribe: false`, because the one of ioredis can end the process. */
    private readonly subscriber: Redis,
    /** For CONFIG and canaries: before RESP3, a subscribed connection takes no other commands. */
    private readonly commands: Redis,
    private readonly pace: ListenerPace = PACE,
  ) {}

  /**
   * Subscribes to key events, until the subscription is closed. Before the application has started, from its start on.
   * @throws InvalidSessionOptionsError naming all problems at once
   */
  listen(options: KeyspaceSubscriptionOptions): KeyspaceSubscription {
    const { subscriber, commands, pace } = this;
    if (isCluster(subscriber)) throw new InvalidSessionOptionsError('KeyspaceNotificationListener', [NO_CLUSTER]);
    const subscription = new ListenerSubscription(subscriber, commands, options, pace.probe, (closed) =>
      this.#remove(closed),
    );
    this.#subscriptions.add(subscription);
    this.#connect();
    return subscription;
  }

  /** The health of the subscription with the worst state. */
  get health(): KeyspaceHealth {
    const all = [...this.#subscriptions].map(({ health }) => health);
    const rank = ({ state }: KeyspaceHealth) => WORST_FIRST.indexOf(state);
    return all.reduce((worst, each) => (rank(each) < rank(worst) ? each : worst), {
      state: 'stopped',
      reason: undefined,
      since: 0,
    });
  }

  /** `RedisSessionModule` calls it. After `stop()` it does nothing. */
  start(): void {
    if (this.#state !== 'new') return;
    this.#state = 'running';
    this.subscriber
      .on('message', this.#onMessage)
      .on('pmessage', this.#onPatternMessage)
      .on('ready', this.#onReady)
      .on('close', this.#onClose);
    this.#heartbeat = setInterval(() => this.#beat(), this.pace.heartbeat).unref();
    this.#connect();
  }

  /**
   * `RedisSessionModule` calls it. Closes the connection for good, and resolves when running handlers have finished.
   */
  async stop(): Promise<void> {
    this.#state = 'stopped';
    clearInterval(this.#heartbeat);
    this.subscriber
      .off('message', this.#onMessage)
      .off('pmessage', this.#onPatternMessage)
      .off('ready', this.#onReady)
      .off('close', this.#onClose);
    void closeConnection(this.subscriber);
    await Promise.all([...this.#subscriptions].map((subscription) => subscription.stop()));
  }

  #connect(): void {
    if (this.#state !== 'running' || this.#subscriptions.size === 0) return;
    for (const subscription of this.#subscriptions) {
      if (subscription.health.state === 'stopped') subscription.disconnected();
    }
    const { status } = this.subscriber;
    if (status === 'ready') void this.#check();
    else if (status === 'wait') this.subscriber.connect().catch(() => undefined);
  }

  #beat(): void {
    if (this.subscriber.status !== 'ready') return;
    // TCP does not notice a peer that vanished while nothing is sent. The PING is something to send, and the timeout of
    // the socket notices when its reply is missing.
    this.subscriber.ping().catch(() => undefined);
    void this.#check();
  }

  /** One check at a time. A request during a check causes another round. */
  async #check(): Promise<void> {
    this.#isCheckDue = true;
    if (this.#isChecking) return;
    this.#isChecking = true;
    while (this.#isCheckDue) {
      this.#isCheckDue = false;
      for (const subscription of this.#subscriptions) {
        if (this.subscriber.status === 'ready') await subscription.check();
      }
    }
    this.#isChecking = false;
  }

  #pass(subscribedTo: string, notification: KeyspaceNotification | undefined): void {
    if (!notification) return;
    for (const subscription of this.#subscriptions) {
      const names = notification.pattern === undefined ? subscription.channels : subscription.patterns;
      if (names.includes(subscribedTo)) subscription.receive(notification);
    }
  }

  #remove(closed: ListenerSubscription): void {
    this.#subscriptions.delete(closed);
    if (this.subscriber.status !== 'ready') return;
    const others = [...this.#subscriptions];
    const channels = closed.channels.filter((name) => !others.some((other) => other.channels.includes(name)));
    const patterns = closed.patterns.filter((name) => !others.some((other) => other.patterns.includes(name)));
    if (channels.length > 0) this.subscriber.unsubscribe(...channels).catch(() => undefined);
    if (patterns.length > 0) this.subscriber.punsubscribe(...patterns).catch(() => undefined);
  }
}
