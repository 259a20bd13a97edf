import type { KeyEventName } from './key-event-names.js';

/** That something has happened to a key, as Redis has announced it. */
export interface KeyspaceNotification {
  /** Redis' name of what happened, such as `expired`. */
  readonly event: KeyEventName;
  /** The key that it happened to. */
  readonly key: string;
  /** The number of the database that has the key. */
  readonly database: number;
  /** The channel it came on: of the key (`__keyspace@0__:<key>`) or of the event (`__keyevent@0__:<event>`). */
  readonly channel: string;
  /** The pattern that matched the channel; undefined where it was subscribed to by its name. */
  readonly pattern: string | undefined;
}

const CHANNEL = /^__key(space|event)@(\d+)__:(.*)$/s;

/** Undefined for a message that is no notification. */
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
