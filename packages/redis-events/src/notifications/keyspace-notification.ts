import type { KeyEventName } from './key-event-names.js';

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

/** Returns the notification in a message, or undefined if the message is something else. */
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
