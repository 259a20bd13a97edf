import type { Redis } from 'ioredis';
import { nodeLike } from '../connection/node-with.js';
import type { RedisNodes } from '../connection/redis-nodes.js';
import type {
  KeyspaceHealth,
  KeyspaceSubscription,
  KeyspaceSubscriptionOptions,
} from './keyspace-subscription.options.js';
import { ListenerSubscription, WORST_FIRST } from './listener-subscription.js';
import { NodeListener } from './node.listener.js';
import type { ProbeConnections } from './notification.probe.js';

/** Milliseconds. */
export interface ListenerPace {
  /** Between two PINGs. */
  readonly heartbeat: number;
  /** Between two probes of whether notifications arrive. */
  readonly probe: number;
}

const PACE: ListenerPace = { heartbeat: 10_000, probe: 60_000 };

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
  /** By the connection. */
  readonly #nodes = new Map<Redis, NodeListener>();
  #state: 'new' | 'running' | 'stopped' = 'new';
  #heartbeat: NodeJS.Timeout | undefined;
  #isConnected = false;

  /** @internal `RedisSessionModule` does this: inject the listener. */
  constructor(
    /** Only the listener uses them. With `autoResubscribe: false`, because the one of ioredis can end the process. */
    private readonly nodes: RedisNodes,
    /** For CONFIG and canaries: before RESP3, a subscribed connection takes no other commands. */
    private readonly commands: Redis,
    private readonly pace: ListenerPace = PACE,
  ) {}

  /**
   * Subscribes to key events, until the subscription is closed. Before the application has started, from its start on. On a
   * Cluster, to those of every primary.
   * @throws InvalidSessionOptionsError naming all problems at once
   */
  listen(options: KeyspaceSubscriptionOptions): KeyspaceSubscription {
    const [node] = this.nodes.all;
    const subscription = new ListenerSubscription(options, node?.options.db ?? 0, this.pace.probe, (closed) =>
      this.#subscriptions.delete(closed),
    );
    this.#subscriptions.add(subscription);
    if (this.#state === 'running') this.#begin(subscription);
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
    this.#heartbeat = setInterval(() => {
      for (const node of this.#nodes.values()) node.beat();
    }, this.pace.heartbeat).unref();
    for (const subscription of this.#subscriptions) this.#begin(subscription);
  }

  /**
   * `RedisSessionModule` calls it. Closes the connections for good, and resolves when running handlers have finished.
   */
  async stop(): Promise<void> {
    this.#state = 'stopped';
    clearInterval(this.#heartbeat);
    for (const node of this.#nodes.values()) node.stop();
    void this.nodes.close();
    await Promise.all([...this.#subscriptions].map((subscription) => subscription.stop()));
  }

  #begin(subscription: ListenerSubscription): void {
    subscription.start();
    for (const [subscriber, node] of this.#nodes) subscription.addNode(node, this.#connectionsTo(subscriber));
    if (this.#isConnected) return;
    this.#isConnected = true;
    this.nodes.onOpen((subscriber) => this.#add(subscriber));
    this.nodes.connect().catch(() => undefined);
  }

  #add(subscriber: Redis): void {
    if (this.#state !== 'running') return;
    const node = new NodeListener(subscriber);
    this.#nodes.set(subscriber, node);
    for (const subscription of this.#subscriptions) subscription.addNode(node, this.#connectionsTo(subscriber));
    subscriber.once('end', () => this.#remove(subscriber));
  }

  /** Other nodes have its keys. */
  #remove(subscriber: Redis): void {
    if (this.#state !== 'running') return;
    this.#nodes.get(subscriber)?.stop();
    this.#nodes.delete(subscriber);
    for (const subscription of this.#subscriptions) subscription.removeNode(subscriber);
  }

  #connectionsTo(subscriber: Redis): ProbeConnections {
    return {
      subscriber,
      commands: () => nodeLike(this.commands, subscriber),
      has: (key) => this.nodes.of(key) === subscriber,
    };
  }
}
