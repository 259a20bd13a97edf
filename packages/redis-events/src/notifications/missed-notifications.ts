import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { shownError } from '@nest-session/core/internal';
import type { Redis } from 'ioredis';
import { nodeLike } from '../connection/node-with.js';
import type { RedisNodes } from '../connection/redis-nodes.js';
import { isAnswer, isFaultOfServer } from '../connection/server-faults.js';
import { RETRY } from '../timing/background-service.js';
import {
  ALL_CLASSES,
  type KeyspaceNotification,
  type KeyspaceState,
  type ResolvedSubscription,
  toKeyspaceNotification,
} from './keyspace-subscription.options.js';

export interface NodeReports {
  receive(notification: KeyspaceNotification): void;
  changed(): void;
  missed(since: number | undefined): void;
}

interface ProbeResult {
  /** Whether flags were missing and have been set, so that Redis may not have sent earlier notifications. */
  readonly flagsWereMissing: boolean;
  /** Why the flags could not be read or set; undefined if they could. */
  readonly refused: string | undefined;
  /** Whether the notification of the canary arrived; undefined without a canary, or if it could not be written. */
  readonly heard: boolean | undefined;
}

// Milliseconds.
const PAUSE_AFTER_ERROR = 100;
// A canary lives for one millisecond by Redis' clock. The clock may be set back meanwhile, so look again.
const LOOK_INTERVAL = 5;
const MOST_LOOKS = 200;
// A prefix with a hash tag has keys on one node only. For any other prefix, a key on the node is soon found.
const MOST_DRAWS = 2000;

/**
 * The part of a subscription on one node: it sets the flags of `notify-keyspace-events`, checks with a canary whether
 * notifications arrive, and reports when some may have been missed.
 */
export class NodeSubscription {
  #state: KeyspaceState = 'connecting';
  #reason: string | undefined;
  /** Counts lost connections and the end, because the result of a check is valid for one connection only. */
  #gone = 0;
  #isSubscribed = false;
  #nextCheck = 0;
  /** The key of the canary whose notification is awaited. */
  #awaited: string | undefined;
  #isChecking = false;
  #isCheckDue = false;
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
    /** The connection on which the notifications of the node arrive. */
    private readonly subscriber: Redis,
    private readonly nodes: Pick<RedisNodes, 'of'>,
    /** Leads to the node for other commands. */
    private readonly commands: Redis,
    private readonly resolved: ResolvedSubscription,
    private readonly reports: NodeReports,
    private readonly interval: number,
    /** When notifications of the whole subscription last arrived. */
    public lastHeard: number | undefined,
  ) {}

  get state(): KeyspaceState {
    return this.#state;
  }

  get reason(): string | undefined {
    return this.#reason;
  }

  start(): void {
    for (const [event, listener] of Object.entries(this.#listeners)) this.subscriber.on(event, listener);
    void this.check();
  }

  stop(): void {
    this.#gone++;
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

  /** Runs one check at a time; a call during a check causes another one. Never rejects. */
  async check(): Promise<void> {
    this.#isCheckDue = true;
    if (this.#isChecking) return;
    this.#isChecking = true;
    while (this.#isCheckDue) {
      this.#isCheckDue = false;
      if (this.subscriber.status === 'ready') await this.#check();
    }
    this.#isChecking = false;
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
    if (performance.now() < this.#nextCheck) return;
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
    const before = this.#state;
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
    if (this.#state === 'listening') this.lastHeard = Date.now();
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
    if (state === this.#state && reason === this.#reason) return;
    [this.#state, this.#reason] = [state, reason];
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
