import { shownError } from '@nest-session/core/internal';
import type { Redis } from 'ioredis';
import { logger } from '../logging/redis-session.logger.js';
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
import { type NodeReports, NodeSubscription } from './node-subscription.js';
import { NotificationQueue } from './notification.queue.js';
import type { NodeListener } from './node.listener.js';
import type { ProbeConnections } from './notification.probe.js';

export const WORST_FIRST: readonly KeyspaceState[] = [
  'refused',
  'silent',
  'connecting',
  'unproven',
  'listening',
  'stopped',
];

/** One subscription of a listener on all nodes. It handles notifications, and reports gaps and health. */
export class ListenerSubscription implements KeyspaceSubscription, NodeReports {
  readonly #resolved: ResolvedSubscription;
  readonly #queue: NotificationQueue;
  readonly #parts = new Map<Redis, { readonly part: NodeSubscription; readonly listener: NodeListener }>();
  #health: KeyspaceHealth = { state: 'stopped', reason: undefined, since: Date.now() };
  #isRunning = false;
  /** The gap that waits to be reported. */
  #gap: KeyspaceGap | undefined;
  #catchingUp: Promise<void> = Promise.resolve();

  constructor(
    private readonly options: KeyspaceSubscriptionOptions,
    database: number,
    /** Milliseconds between two checks. */
    private readonly interval: number,
    private readonly remove: (subscription: ListenerSubscription) => void,
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

  /** Called when the listener starts. */
  start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.changed();
  }

  /** Subscribes on a node that has got keys. */
  addNode(listener: NodeListener, connections: ProbeConnections): void {
    const others = [...this.#parts.values()].map(({ part }) => part.heardAt).filter((at) => at !== undefined);
    const lastHeard = others.length > 0 ? Math.min(...others) : undefined;
    const part = new NodeSubscription(connections, this.#resolved, this, this.interval, lastHeard);
    this.#parts.set(connections.subscriber, { part, listener });
    this.changed();
    listener.add(part);
  }

  /** Called when a node no longer has any keys. */
  removeNode(subscriber: Redis): void {
    this.#parts.delete(subscriber);
    this.changed();
  }

  async close(): Promise<void> {
    this.remove(this);
    for (const { part, listener } of this.#parts.values()) listener.remove(part);
    await this.stop();
  }

  /** Resolves when running handlers have finished. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    this.#parts.clear();
    this.changed();
    await Promise.all([this.#queue.stop(), this.#catchingUp]);
  }

  receive(notification: KeyspaceNotification): void {
    if (this.#isRunning) this.#queue.push(notification);
  }

  /** Takes over the health of the node with the worst state. */
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

  /** Calls `onGap` once at a time. A waiting call also covers the gaps that follow. */
  missed(since: number | undefined): void {
    const waiting = this.#gap;
    this.#gap = { since: waiting ? earlier(waiting.since, since) : since };
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
    const parts = [...this.#parts.values()].map(({ part }) => part);
    const rank = ({ state }: NodeSubscription) => WORST_FIRST.indexOf(state);
    const [worst] = parts.toSorted((a, b) => rank(a) - rank(b));
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

/** Returns the earlier time. Undefined is the earliest of all. */
function earlier(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? undefined : Math.min(one, other);
}
