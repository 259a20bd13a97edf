import type { FactoryProvider } from '@nestjs/common';
import { shownError } from '@nest-session/core/internal';
import { PollingLoop } from '@nest-session/core/store';
import type { Redis } from 'ioredis';
import { connectionToken, type RedisConnections } from '../connection/redis-connections.js';
import type { RedisNodes } from '../connection/redis-nodes.js';
import { logger } from '../logging/failure.log.js';
import {
  ALL_CLASSES,
  type KeyspaceGap,
  type KeyspaceHealth,
  type KeyspaceNotification,
  type KeyspaceState,
  type KeyspaceSubscription,
  type KeyspaceSubscriptionOptions,
  type ResolvedSubscription,
  resolveSubscription,
  toKeyspaceNotification,
} from './keyspace-subscription.options.js';
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { nodeLike } from '../connection/node-with.js';
import { isAnswer, isFaultOfServer } from '../connection/server-faults.js';
import { RETRY } from '../timing/background-service.js';

export interface ListenerPace {
  readonly heartbeat: number;
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

export class ListenerSubscription implements KeyspaceSubscription {
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

interface ProbeResult {
  /** Whether flags were missing and have been set, so that Redis may not have sent earlier notifications. */
  readonly flagsWereMissing: boolean;
  /** Why the flags could not be read or set; undefined if they could. */
  readonly refused: string | undefined;
  /** Whether the notification of the canary arrived; undefined without a canary, or if it could not be written. */
  readonly heard: boolean | undefined;
}

const PAUSE_AFTER_ERROR = 100;
// A canary lives for one millisecond by Redis' clock. The clock may be set back meanwhile, so look again.
const LOOK_INTERVAL = 5;
const MOST_LOOKS = 200;
// A prefix with a hash tag has keys on one node only. For any other prefix, a key on the node is soon found.
const MOST_DRAWS = 2000;

/** The part of a subscription on one node: sets the flags, checks with a canary that it hears Redis, tells of gaps. */
class NodeSubscription {
  state: KeyspaceState = 'connecting';
  reason: string | undefined;
  /** Counts lost connections and the end, because the result of a check is valid for one connection only. */
  #gone = 0;
  #isSubscribed = false;
  #nextCheck = 0;
  /** The key of the canary whose notification is awaited. */
  #awaited: string | undefined;
  #checks = Promise.resolve();
  #isOver = false;
  readonly #listeners = {
    message: (channel: string, message: string) => {
      if (this.resolved.channels.includes(channel)) this.#receive(toKeyspaceNotification(channel, message));
    },
    pmessage: (pattern: string, channel: string, message: string) => {
      if (this.resolved.patterns.includes(pattern)) this.#receive(toKeyspaceNotification(channel, message, pattern));
    },
    ready: () => void this.check(),
    close: () => this.#disconnected(),
  };

  constructor(
    private readonly subscriber: Redis,
    private readonly nodes: Pick<RedisNodes, 'of'>,
    private readonly commands: Redis,
    private readonly resolved: ResolvedSubscription,
    private readonly reports: ListenerSubscription,
    private readonly interval: number,
    /** When notifications of the whole subscription last arrived. */
    public lastHeard: number | undefined,
  ) {}

  start(): void {
    for (const [event, listener] of Object.entries(this.#listeners)) this.subscriber.on(event, listener);
    void this.check();
  }

  stop(): void {
    this.#gone++;
    this.#isOver = true;
    for (const [event, listener] of Object.entries(this.#listeners)) this.subscriber.off(event, listener);
  }

  /** Unsubscribes from what the others do not hear. */
  leave(others: readonly ResolvedSubscription[]): void {
    this.stop();
    const { subscriber } = this;
    if (subscriber.status !== 'ready') return;
    const alone = (kind: 'channels' | 'patterns') =>
      this.resolved[kind].filter((name) => !others.some((other) => other[kind].includes(name)));
    const [channels, patterns] = [alone('channels'), alone('patterns')];
    if (channels.length > 0) subscriber.unsubscribe(...channels).catch(() => undefined);
    if (patterns.length > 0) subscriber.punsubscribe(...patterns).catch(() => undefined);
  }

  /** One at a time: a call during a check causes another one. Never rejects. */
  check(): Promise<void> {
    return (this.#checks = this.#checks.then(() => this.#check()));
  }

  #disconnected(): void {
    this.#gone++;
    this.#isSubscribed = false;
    this.#nextCheck = 0;
    this.#report('connecting', 'there is no connection to Redis');
  }

  #receive(notification: KeyspaceNotification | undefined): void {
    if (!notification || !this.resolved.hears(notification.event)) return;
    const { event, key } = notification;
    const isCanary = this.resolved.canaries.some((prefix) => key.startsWith(prefix));
    if (!isCanary) this.reports.receive(notification);
    else if (event === 'expired' && key === this.#awaited) this.#awaited = undefined;
  }

  async #check(): Promise<void> {
    // A check that became due before the end would subscribe again after it.
    if (this.#isOver || this.subscriber.status !== 'ready' || performance.now() < this.#nextCheck) return;
    const gone = this.#gone;
    const isNew = !this.#isSubscribed;
    if (!isNew || (await this.#subscribe())) {
      const result = await this.#probe();
      if (gone === this.#gone) this.#conclude(result, isNew);
    }
    if (gone === this.#gone) this.#nextCheck = performance.now() + this.interval;
  }

  async #subscribe(): Promise<boolean> {
    const gone = this.#gone;
    const { subscriber } = this;
    const { channels, patterns } = this.resolved;
    while (gone === this.#gone) {
      try {
        if (channels.length > 0) await subscriber.subscribe(...channels);
        if (gone === this.#gone && patterns.length > 0) await subscriber.psubscribe(...patterns);
        this.#isSubscribed = gone === this.#gone;
        return this.#isSubscribed;
      } catch (error) {
        if (gone !== this.#gone) break;
        if (!isFaultOfServer(error)) {
          this.#report('refused', `the channel is not allowed (${shownError(error)})`);
          break;
        }
        await pause(RETRY, undefined, { ref: false });
      }
    }
    return false;
  }

  #conclude({ heard, refused, flagsWereMissing }: ProbeResult, isNew: boolean): void {
    const before = this.state;
    if (heard === false) {
      // After a failover the old server may stay connected, but keys no longer expire there. A new connection finds the
      // new server.
      if (!isNew && (before === 'listening' || refused === undefined)) {
        return this.subscriber.disconnect(true);
      }
      this.#report('silent', refused ?? `no notification arrives, although "${this.resolved.flags}" is set`);
    } else if (heard === undefined && refused !== undefined) {
      this.#report('unproven', refused);
    } else {
      this.#report('listening');
    }
    if (isNew || flagsWereMissing || (before === 'silent' && heard)) this.reports.missed(this.lastHeard);
    if (this.state === 'listening') this.lastHeard = Date.now();
  }

  /** While the node has a connection for notifications, waits for one for commands. */
  async #probe(): Promise<ProbeResult> {
    const { flags } = this.resolved;
    for (;;) {
      try {
        const flagsWereMissing = await requireFlags(nodeLike(this.commands, this.subscriber), flags);
        return { flagsWereMissing, refused: undefined, heard: await this.#hearsCanary() };
      } catch (error) {
        const isAnswered = isAnswer(error) && !isFaultOfServer(error);
        if (isAnswered || this.subscriber.status !== 'ready') {
          const refused =
            `CONFIG is not allowed (${shownError(error)}): ` + `set notify-keyspace-events to "${flags}" on the server`;
          return { flagsWereMissing: false, refused, heard: await this.#hearsCanary() };
        }
        await pause(PAUSE_AFTER_ERROR, undefined, { ref: false });
      }
    }
  }

  async #hearsCanary(): Promise<boolean | undefined> {
    const key = this.#canaryOfNode();
    if (key === undefined) return undefined;
    this.#awaited = key;
    try {
      const commands = nodeLike(this.commands, this.subscriber);
      await commands.set(key, '', 'PX', 1);
      for (let looks = 1; (await commands.exists(key)) === 1; looks++) {
        if (looks === MOST_LOOKS) return undefined;
        await pause(LOOK_INTERVAL, undefined, { ref: false });
      }
      // Redis sends the notification before the reply to this PING or not at all.
      await this.subscriber.ping();
    } catch {
      return undefined;
    }
    return this.#awaited !== key;
  }

  #canaryOfNode(): string | undefined {
    const { canaries } = this.resolved;
    for (let draws = 0; draws < MOST_DRAWS && canaries.length > 0; draws++) {
      const key = canaries[draws % canaries.length]! + randomUUID();
      if (this.nodes.of(key) === this.subscriber) return key;
    }
    return undefined;
  }

  #report(state: KeyspaceState, reason?: string): void {
    if (state === this.state && reason === this.reason) return;
    [this.state, this.reason] = [state, reason];
    this.reports.changed();
  }
}

const turns = new Map<string, Promise<unknown>>();

/** Adds the missing flags. Whether the setting has changed. Rejects if CONFIG is not allowed. */
export function requireFlags(client: Redis, needed: string): Promise<boolean> {
  // One connection of the process after the other: of two that read before either writes, one would lose its flags.
  const { host, port, path } = client.options;
  const server = [host, port, path].join(' ');
  const added = Promise.resolve(turns.get(server)).then(() => addFlags(client, needed));
  turns.set(
    server,
    added.catch(() => undefined),
  );
  return added;
}

async function addFlags(client: Redis, needed: string): Promise<boolean> {
  const before = await read(client);
  const present = before.replace('A', ALL_CLASSES);
  const missing = needed.split('').filter((flag) => !present.includes(flag));
  if (missing.length === 0) return false;
  await client.config('SET', 'notify-keyspace-events', before + missing.join(''));
  // Redis 7.0 does not show the flag `n` together with `A`, so compare the settings.
  return (await read(client)) !== before;
}

async function read(client: Redis): Promise<string> {
  const [, flags = ''] = (await client.config('GET', 'notify-keyspace-events')) as string[];
  return flags;
}
