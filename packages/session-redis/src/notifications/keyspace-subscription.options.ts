import { OptionReader } from '@nest-session/core/store';
import { classesOf, type KeyEventName } from './key-event-names.js';
import type { KeyspaceNotification } from './keyspace-notification.js';

/**
 * - `stopped`: the listener is not running, or the subscription was closed.
 * - `connecting`: there is no connection; one is being made.
 * - `listening`: Redis announces, as was proved when the connection was made and is again once a minute.
 * - `unproven`: subscribed, but whether Redis announces anything cannot be found out: CONFIG is not allowed.
 * - `silent`: subscribed, but Redis does not announce.
 * - `refused`: Redis does not allow the channels.
 */
export type KeyspaceState = 'stopped' | 'connecting' | 'listening' | 'unproven' | 'silent' | 'refused';

/** Whether a subscription hears what Redis announces. */
export interface KeyspaceHealth {
  /** The state now; see `KeyspaceState`. */
  readonly state: KeyspaceState;
  /** Why, where it is not simply so. */
  readonly reason: string | undefined;
  /** Since when; epoch ms by the clock of this process. */
  readonly since: number;
}

/** A time in which notifications may have been missed. It ends with the call that tells of it. */
export interface KeyspaceGap {
  /**
   * When Redis was last known to announce, up to a minute before the gap; epoch ms by the clock of this process.
   * Undefined for the first: nothing before it was heard.
   */
  readonly since: number | undefined;
}

/** What `KeyspaceNotificationListener.listen()` returns. */
export interface KeyspaceSubscription {
  /** Whether the subscription hears what Redis announces, as of now. */
  readonly health: KeyspaceHealth;
  /** Hears no more. Resolves when the calls of the handler that are running have finished. */
  close(): Promise<void>;
}

/** What to hear of, and what to do with it. */
export interface KeyspaceSubscriptionOptions {
  /** Redis' names of the events, such as `'expired'` or `['set', 'del']`; `'*'`: all, which costs Redis the most. */
  readonly events: KeyEventName | readonly KeyEventName[];
  /**
   * Of which keys: a key or a pattern of Redis (`'cart:*'`), or several. Redis then sends nothing of other keys.
   * @default all
   */
  readonly keys?: string | readonly string[];
  /** Its number; `'*'`: all. @default that of the listener's connection */
  readonly database?: number | '*';
  /** Is called with each notification and awaited. */
  readonly handler: (notification: KeyspaceNotification) => unknown;
  /** How many calls of the handler may run at a time; with 1 they keep the order of the announcements. @default 1 */
  readonly concurrency?: number;
  /**
   * Is given each notification that was not processed, and why: the handler failed, more than 10,000 were waiting for
   * it, or the listener was stopped before their turn. @default a line in the log, without the key
   */
  readonly onError?: (error: unknown, notification: KeyspaceNotification) => unknown;
  /**
   * Is called when notifications may have been missed: after the first subscription, after each lost connection, and
   * when Redis had ceased to announce. By then new ones are being heard, so what it looks up may come once more.
   */
  readonly onGap?: (gap: KeyspaceGap) => unknown;
  /** Is called with each change of the state. @default a line in the log */
  readonly onHealth?: (health: KeyspaceHealth) => unknown;
  /**
   * What the key of a canary begins with: a key that the listener writes and lets expire, now and once a minute, to
   * prove that notifications arrive. It must be among `keys`, in the listener's database, and nobody else's; the
   * handler hears of none that begins so. Needs the event `'expired'`. @default CONFIG is asked, where it is allowed
   */
  readonly canary?: string;
}

export interface ResolvedSubscription {
  /** Channels to subscribe to by name. */
  readonly channels: readonly string[];
  readonly patterns: readonly string[];
  /** What `notify-keyspace-events` must contain. */
  readonly flags: string;
  readonly hears: (event: KeyEventName) => boolean;
  readonly concurrency: number;
  readonly canary: string | undefined;
}

/** @throws InvalidSessionOptionsError naming all problems at once */
export function resolveSubscription(options: KeyspaceSubscriptionOptions, ownDatabase: number): ResolvedSubscription {
  const reader = new OptionReader('KeyspaceNotificationListener', options);
  const events = asList(reader.value('events', isNames, 'the name of an event, a list of them, or "*"'));
  if (events.length === 0) reader.problem('Option `events` names no event.');
  const keys = reader.value('keys', isNames, 'a key, a pattern of keys, or a list of them');
  const database = reader.value('database', isDatabase, 'the number of a database, or "*"') ?? ownDatabase;
  const canary = reader.text('canary', undefined, (text) => (text === '' ? 'must not be empty' : undefined));
  const concurrency = reader.integer('concurrency', 1, { atLeast: 1, atMost: 10_000 });
  if (!reader.value('handler', isFunction, 'a function')) reader.problem('Option `handler` is missing.');
  for (const name of ['onError', 'onGap', 'onHealth']) reader.value(name, isFunction, 'a function');
  const all = events.includes('*');
  if (canary !== undefined && !(all || events.includes('expired'))) {
    reader.problem('Option `canary` needs the event "expired" among `events`.');
  }
  if (canary !== undefined && database !== ownDatabase) {
    reader.problem('Option `canary` needs the database of the listener.');
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
    concurrency,
    canary,
  };
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

function isDatabase(value: unknown): value is number | '*' {
  return value === '*' || (Number.isInteger(value) && Number(value) >= 0);
}

function isFunction(value: unknown): value is (...args: never[]) => unknown {
  return typeof value === 'function';
}
