import type { Redis } from 'ioredis';
import { type KeyspaceNotification, toKeyspaceNotification } from './keyspace-notification.js';
import type { NodeSubscription } from './node-subscription.js';

/** The subscriptions on the connection to one node. */
export class NodeListener {
  readonly #subscriptions = new Set<NodeSubscription>();
  #isChecking = false;
  #isCheckDue = false;
  readonly #onMessage = (channel: string, message: string) =>
    this.#pass(channel, toKeyspaceNotification(channel, message));
  readonly #onPatternMessage = (pattern: string, channel: string, message: string) =>
    this.#pass(pattern, toKeyspaceNotification(channel, message, pattern));
  readonly #onReady = () => void this.check();
  readonly #onClose = () => {
    for (const subscription of this.#subscriptions) subscription.disconnected('there is no connection to Redis');
  };

  /**
   * @param subscriber a connection for the listener alone, with `autoResubscribe: false`: that of ioredis can end the
   *   process
   */
  constructor(private readonly subscriber: Redis) {
    subscriber
      .on('message', this.#onMessage)
      .on('pmessage', this.#onPatternMessage)
      .on('ready', this.#onReady)
      .on('close', this.#onClose);
  }

  add(subscription: NodeSubscription): void {
    this.#subscriptions.add(subscription);
    if (this.subscriber.status === 'ready') void this.check();
  }

  remove(removed: NodeSubscription): void {
    this.#subscriptions.delete(removed);
    removed.closed();
    if (this.subscriber.status !== 'ready') return;
    const others = [...this.#subscriptions];
    const channels = removed.channels.filter((name) => !others.some((other) => other.channels.includes(name)));
    const patterns = removed.patterns.filter((name) => !others.some((other) => other.patterns.includes(name)));
    if (channels.length > 0) this.subscriber.unsubscribe(...channels).catch(() => undefined);
    if (patterns.length > 0) this.subscriber.punsubscribe(...patterns).catch(() => undefined);
  }

  /** Stops using the connection. */
  stop(): void {
    this.#subscriptions.clear();
    this.subscriber
      .off('message', this.#onMessage)
      .off('pmessage', this.#onPatternMessage)
      .off('ready', this.#onReady)
      .off('close', this.#onClose);
  }

  beat(): void {
    if (this.subscriber.status !== 'ready') return;
    // TCP notices a vanished peer only when something is sent. The PING sends something, and the timeout of the socket
    // notices when its reply is missing.
    this.subscriber.ping().catch(() => undefined);
    void this.check();
  }

  /** Runs one check at a time. A call during a check causes another round. */
  async check(): Promise<void> {
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
}
