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

/** The intervals of a listener, in milliseconds. */
export interface ListenerPace {
  /** The time between two PINGs. */
  readonly heartbeat: number;
  /** The time between two checks that notifications arrive. */
  readonly probe: number;
}

const PACE: ListenerPace = { heartbeat: 10_000, probe: 60_000 };

/**
 * Listens to key events of Redis: a key was set, was deleted or has expired. `RedisEventsModule` and
 * `RedisSessionModule` provide it for injection, and start and stop it with the application. It connects at the first
 * `listen()`.
 *
 * Notifications are fast, but best effort. They are lost during an outage, and while `notify-keyspace-events` lacks a
 * flag. The listener sets the flags if CONFIG is allowed, replaces dead connections, notices when Redis is silent, and
 * calls `onGap` when notifications may be missing. Every instance gets every notification.
 */
export class KeyspaceNotificationListener {
  readonly #subscriptions = new Set<ListenerSubscription>();
  /** The listeners of the nodes, by connection. */
  readonly #nodes = new Map<Redis, NodeListener>();
  #state: 'new' | 'running' | 'stopped' = 'new';
  #heartbeat: NodeJS.Timeout | undefined;
  #isConnected = false;

  /** @internal Inject it. */
  constructor(
    /** Connections for the listener alone, with `autoResubscribe: false`: that of ioredis can end the process. */
    private readonly nodes: RedisNodes,
    /** The connection for CONFIG and canaries. Before RESP3, a subscribed connection accepts no other commands. */
    private readonly commands: Redis,
    private readonly pace: ListenerPace = PACE,
  ) {}

  /**
   * Subscribes to key events until you close the subscription. If you call it before the application has started, it
   * subscribes at the start. On a Cluster, it subscribes to the events of every primary.
   * @throws InvalidSessionOptionsError that names all problems at once
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

  /** Called by `RedisSessionModule`. After `stop()` it does nothing. */
  start(): void {
    if (this.#state !== 'new') return;
    this.#state = 'running';
    this.#heartbeat = setInterval(() => {
      for (const node of this.#nodes.values()) node.beat();
    }, this.pace.heartbeat).unref();
    for (const subscription of this.#subscriptions) this.#begin(subscription);
  }

  /**
   * Closes the connections for good, and resolves when running handlers have finished. Called by `RedisSessionModule`.
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

  /** Forgets a node whose keys have moved to other nodes. */
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
