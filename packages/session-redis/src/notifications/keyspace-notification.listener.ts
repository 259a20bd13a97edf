import type { Redis } from 'ioredis';
import { closeConnection } from '../connection/close-connection.js';
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
  /** Between two proofs that notifications arrive. */
  readonly proof: number;
}

const PACE: ListenerPace = { heartbeat: 10_000, proof: 60_000 };

const WORST_FIRST: readonly KeyspaceState[] = ['refused', 'silent', 'connecting', 'unproven', 'listening', 'stopped'];

/**
 * Hears what Redis announces of its keys: that one was set, was deleted, has expired. `RedisSessionModule` provides it,
 * and starts and stops it with the application; it connects with the first `listen()`.
 *
 * It is quick, and a best effort: what Redis announces while there is no connection, or while the server's setting
 * `notify-keyspace-events` lacks a flag, is gone. The listener sets the flags where CONFIG is allowed, notices dead
 * connections and servers that have gone silent, mends both, and tells `onGap` that something may have been missed.
 * Every instance of the application hears everything.
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
    /** Its own: it opens and closes it. With `autoResubscribe: false`, since ioredis' own way can end the process. */
    private readonly subscriber: Redis,
    /** For CONFIG and canaries: before RESP3, a connection that is subscribed takes no other commands. */
    private readonly commands: Redis,
    private readonly pace: ListenerPace = PACE,
  ) {}

  /**
   * Hears of something from now on, and until the subscription is closed; before `start()`, from then on.
   * @throws InvalidSessionOptionsError
   */
  listen(options: KeyspaceSubscriptionOptions): KeyspaceSubscription {
    const { subscriber, commands, pace } = this;
    const subscription = new ListenerSubscription(subscriber, commands, options, pace.proof, (closed) =>
      this.#remove(closed),
    );
    this.#subscriptions.add(subscription);
    this.#connect();
    return subscription;
  }

  /** That of the subscription which is worst off. */
  get health(): KeyspaceHealth {
    const all = [...this.#subscriptions].map(({ health }) => health);
    const rank = ({ state }: KeyspaceHealth) => WORST_FIRST.indexOf(state);
    return all.reduce((worst, each) => (rank(each) < rank(worst) ? each : worst), {
      state: 'stopped',
      reason: undefined,
      since: 0,
    });
  }

  /** Once; what was stopped is not started again. */
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

  /** Closes the connection, for good. Resolves when the handlers that are running have finished. */
  async stop(): Promise<void> {
    this.#state = 'stopped';
    clearInterval(this.#heartbeat);
    this.subscriber
      .off('message', this.#onMessage)
      .off('pmessage', this.#onPatternMessage)
      .off('ready', this.#onReady)
      .off('close', this.#onClose);
    closeConnection(this.subscriber);
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
    // A connection whose other end has vanished is never closed while we only wait: TCP notices when something is to be
    // sent, and the socket's timeout when that is not answered.
    this.subscriber.ping().catch(() => undefined);
    void this.#check();
  }

  /** Never two at a time; what comes meanwhile is another round. */
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
