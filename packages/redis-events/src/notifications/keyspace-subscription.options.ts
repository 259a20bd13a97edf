import { OptionReader } from '@nest-session/core/internal';

/**
 * The state of a subscription.
 * - `stopped`: the listener is not running, or the subscription was closed.
 * - `connecting`: there is no connection yet, or the listener is reconnecting.
 * - `listening`: Redis sends notifications. The listener checks that after each connect, and once a minute.
 * - `unproven`: the listener has subscribed, but cannot know whether Redis sends notifications, because CONFIG is not
 *   allowed and there is no canary.
 * - `silent`: the listener has subscribed, but Redis sends no notifications.
 * - `refused`: Redis does not allow the channels.
 */
export type KeyspaceState = 'stopped' | 'connecting' | 'listening' | 'unproven' | 'silent' | 'refused';

/** The health of a subscription. */
export interface KeyspaceHealth {
  /** The current state. See `KeyspaceState`. */
  readonly state: KeyspaceState;
  /** The reason for the state, in a form for logs; undefined if the state needs no reason. */
  readonly reason: string | undefined;
  /** When the state or its reason last changed, in epoch ms by the clock of this process. */
  readonly since: number;
}

/** A period in which notifications may have been missed. It ends with the call of `onGap`. */
export interface KeyspaceGap {
  /**
   * When notifications last proved to arrive, in epoch ms by the clock of this process: up to a minute before the gap.
   * Undefined for the first gap, which covers all time before the subscription.
   */
  readonly since: number | undefined;
}

/** A subscription that `KeyspaceNotificationListener.listen()` returns. */
export interface KeyspaceSubscription {
  /** The current health. */
  readonly health: KeyspaceHealth;
  /** Ends the subscription. Resolves when running calls of the handler have finished. */
  close(): Promise<void>;
}

/** Options of `KeyspaceNotificationListener.listen()`. */
export interface KeyspaceSubscriptionOptions {
  /** Redis' names of the events, such as `'expired'` or `['set', 'del']`. `'*'`, all events, costs Redis the most. */
  readonly events: KeyEventName | readonly KeyEventName[];
  /** A key, a pattern such as `'cart:*'`, or a list: Redis sends nothing about others. @default all keys */
  readonly keys?: string | readonly string[];
  /** The number of the database, or `'*'` for all databases. @default the database of the listener's connection */
  readonly database?: number | '*';
  /** Called with each notification, and awaited. */
  readonly handler: (notification: KeyspaceNotification) => unknown;
  /** Calls of the handler at a time, 1 to 10000. With 1, they keep the order of the events. @default 1 */
  readonly concurrency?: number;
  /**
   * Called with what was not handled: the handler failed, 10,000 notifications were already waiting, or the listener
   * stopped first. @default a log line without the key
   */
  readonly onError?: (error: unknown, notification: KeyspaceNotification) => unknown;
  /**
   * Called when notifications may have been missed: after the first subscription, each lost connection, and when Redis
   * was silent. New ones already arrive by then, perhaps about a key that you look up here.
   */
  readonly onGap?: (gap: KeyspaceGap) => unknown;
  /** Called with each change of the health. @default a log line */
  readonly onHealth?: (health: KeyspaceHealth) => unknown;
  /**
   * Prefixes for the keys of canaries, which the listener writes at the start and once a minute and lets expire, to
   * check that notifications arrive. A prefix must match `keys`, and no other key may have it: the handler does not
   * hear of such keys. On a Cluster, each node that can have one is checked. It needs the event `'expired'` and the
   * database of the listener. @default none: the listener reads CONFIG if that is allowed
   */
  readonly canary?: string | readonly string[];
}

export interface ResolvedSubscription {
  readonly channels: readonly string[];
  readonly patterns: readonly string[];
  readonly flags: string;
  readonly hears: (event: KeyEventName) => boolean;
  /** Events that may be those of a later Redis, or of a module. */
  readonly unknown: readonly KeyEventName[];
  readonly concurrency: number;
  readonly canaries: readonly string[];
}

export function resolveSubscription(options: KeyspaceSubscriptionOptions, ownDatabase: number): ResolvedSubscription {
  const reader = new OptionReader('KeyspaceNotificationListener', options);
  const events = asList(reader.value('events', isNames, 'the name of an event, a list of names, or "*"'));
  if (events.length === 0) reader.problem('Option `events` must name at least one event.');
  for (const event of events) {
    const problem = eventProblem(event);
    if (problem !== undefined) reader.problem(`Option \`events\` has ${JSON.stringify(event)}, ${problem}.`);
  }
  const keys = reader.value('keys', isNames, 'a key, a pattern, or a list of keys and patterns');
  if (keys?.length === 0) reader.problem('Option `keys` must name at least one key: leave it out for all keys.');
  const isDatabase = (value: unknown): value is number | '*' =>
    value === '*' || (Number.isInteger(value) && Number(value) >= 0);
  const database = reader.value('database', isDatabase, 'the number of a database, or "*"') ?? ownDatabase;
  const canary = reader.value('canary', isNames, 'a prefix of keys, or a list of prefixes');
  const concurrency = reader.integer('concurrency', 1, { atLeast: 1, atMost: 10_000 });
  if (!reader.value('handler', isFunction, 'a function')) reader.problem('Option `handler` is missing.');
  for (const name of ['onError', 'onGap', 'onHealth']) reader.value(name, isFunction, 'a function');
  const all = events.includes('*');
  if (canary !== undefined && !(all || events.includes('expired'))) {
    reader.problem('Option `canary` needs the event "expired" among `events`.');
  }
  if (canary !== undefined && database !== ownDatabase) {
    reader.problem('Option `canary` needs the database of the listener: remove the option `database`.');
  }
  reader.finish();
  const channels =
    keys === undefined
      ? events.map((event) => `__keyevent@${database}__:${event}`)
      : asList(keys).map((key) => `__keyspace@${database}__:${key}`);
  return {
    channels: channels.filter((channel) => !isPattern(channel)),
    patterns: channels.filter(isPattern),
    flags: (keys === undefined ? 'E' : 'K') + classesOf(events),
    hears: (event) => all || events.includes(event),
    unknown: events.filter((event) => event !== '*' && eventLike(event) === undefined),
    concurrency,
    canaries: asList(canary),
  };
}

/** Undefined of one that may be that of a module of Redis. */
function eventProblem(event: string): string | undefined {
  if (event === '*') return undefined;
  if (isPattern(event)) return 'and takes no patterns: name each event, or write "*" for all of them';
  const name = eventLike(event);
  return name === undefined || name === event ? undefined : `which is no event of Redis: write "${name}"`;
}

function isPattern(channel: string): boolean {
  return /[*?[\\]/.test(channel);
}

function asList(names: string | readonly string[] | undefined): readonly string[] {
  return typeof names === 'string' ? [names] : (names ?? []);
}

function isNames(value: unknown): value is string | readonly string[] {
  const names: unknown[] = Array.isArray(value) ? value : [value];
  return names.every((name) => typeof name === 'string' && name !== '');
}

function isFunction(value: unknown): value is (...args: never[]) => unknown {
  return typeof value === 'function';
}

/** A key event, as Redis sent it. */
export interface KeyspaceNotification {
  /** Redis' name of the event, such as `expired`. */
  readonly event: KeyEventName;
  /** The key. */
  readonly key: string;
  /** The number of the database that has the key. */
  readonly database: number;
  /** The channel of the message: `__keyspace@0__:<key>` or `__keyevent@0__:<event>`. */
  readonly channel: string;
  /** The subscribed pattern that matched the channel; undefined if the channel was subscribed by name. */
  readonly pattern: string | undefined;
}

const CHANNEL = /^__key(space|event)@(\d+)__:(.*)$/s;

export function toKeyspaceNotification(
  channel: string,
  message: string,
  pattern?: string,
): KeyspaceNotification | undefined {
  const [, kind, database, name = ''] = CHANNEL.exec(channel) ?? [];
  if (kind === undefined) return undefined;
  const [key, event] = kind === 'space' ? [name, message] : [message, name];
  return { event, key, database: Number(database), channel, pattern };
}

/** The key events of Redis 7.0, by the flag of `notify-keyspace-events` that enables them. */
export const KEY_EVENTS = {
  x: ['expired'],
  e: ['evicted'],
  g: ['del', 'expire', 'persist', 'rename_from', 'rename_to', 'move_from', 'move_to', 'copy_to', 'restore'],
  $: ['set', 'setrange', 'setbit', 'append', 'incrby', 'incrbyfloat', 'pfadd'],
  h: ['hset', 'hdel', 'hincrby', 'hincrbyfloat'],
  l: ['lpush', 'rpush', 'lpop', 'rpop', 'linsert', 'lset', 'lrem', 'ltrim', 'sortstore'],
  s: ['sadd', 'srem', 'spop', 'sinterstore', 'sunionstore', 'sdiffstore'],
  z: [
    'zadd',
    'zincr',
    'zrem',
    'zpopmin',
    'zpopmax',
    'zremrangebyrank',
    'zremrangebyscore',
    'zremrangebylex',
    'zrangestore',
    'zinterstore',
    'zunionstore',
    'zdiffstore',
    'geosearchstore',
    'georadiusstore',
  ],
  t: [
    'xadd',
    'xdel',
    'xtrim',
    'xsetid',
    'xgroup-create',
    'xgroup-setid',
    'xgroup-destroy',
    'xgroup-createconsumer',
    'xgroup-delconsumer',
  ],
  m: ['keymiss'],
  n: ['new'],
} as const;

/** Redis' name of a key event, such as `'expired'` or `'set'`. Other names are accepted as well. */
export type KeyEventName = (typeof KEY_EVENTS)[keyof typeof KEY_EVENTS][number] | (string & {});

/** What Redis calls the events of commands that have none of their own name. */
const EVENTS_OF_COMMANDS: ReadonlyMap<string, KeyEventName> = new Map(
  Object.entries({
    del: ['delete', 'unlink'],
    evicted: ['evict'],
    expire: ['expireat', 'pexpire', 'pexpireat', 'getex'],
    hset: ['hmset', 'hsetnx'],
    incrby: ['incr', 'decr', 'decrby'],
    copy_to: ['copy'],
    move_to: ['move'],
    rename_to: ['rename'],
    set: ['getset', 'mset', 'msetnx', 'psetex', 'setex', 'setnx'],
  }).flatMap(([event, commands]) => commands.map((command) => [command, event] as const)),
);

function eventLike(name: string): KeyEventName | undefined {
  const [, event = ''] = /^(?:__key\w+@[^:]*__:)?(.*)$/s.exec(name.trim().toLowerCase()) ?? [];
  const known = Object.values(KEY_EVENTS).flat<readonly (readonly string[])[]>();
  return known.includes(event) ? event : EVENTS_OF_COMMANDS.get(event);
}

/** The flags that `A` stands for: all except `m` (misses) and `n` (new keys). */
export const ALL_CLASSES = 'g$lshzxetd';

/** For an event that is not listed, all flags. */
export function classesOf(events: readonly KeyEventName[]): string {
  const flags = events.map((event) => {
    const known = Object.entries(KEY_EVENTS).find(([, names]) => (names as readonly string[]).includes(event));
    return known?.[0] ?? ALL_CLASSES;
  });
  return [...new Set(flags.join('').split(''))].join('');
}
