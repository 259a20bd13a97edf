import type { SessionKeys } from '../keys/session-keys.js';
import type { StreamReply } from '../scripts/stream/event-stream.scripts.js';

/** An entry of the events stream of a partition, or of its dead letters. */
export interface StreamEntry {
  readonly partition: SessionKeys;
  /** The entry id of Redis; entries of other partitions may have the same. */
  readonly position: string;
  /** Fields and values in turn. */
  readonly fields: readonly string[];
}

export function toStreamEntry(partition: SessionKeys, [position, fields]: StreamReply): StreamEntry {
  return { partition, position, fields };
}

/** The unique name of an entry, for maps and for the log. */
export function nameOf({ partition, position }: StreamEntry): string {
  return `${partition.events}/${position}`;
}

export function fieldOf({ fields }: StreamEntry, name: string): string | undefined {
  const index = fields.findIndex((field, i) => i % 2 === 0 && field === name);
  return index < 0 ? undefined : fields[index + 1];
}

/** The id of the session; undefined when somebody else has written the entry. */
export function sessionIdOf(entry: StreamEntry): string | undefined {
  return fieldOf(entry, 'session');
}

/** The only group that handles a replayed entry; undefined for any other entry. */
export function groupOf(entry: StreamEntry): string | undefined {
  return fieldOf(entry, 'group');
}

/** The names of the handlers that had succeeded before the entry was replayed. */
export function doneBefore(entry: StreamEntry): readonly string[] {
  return namesIn(parsed(fieldOf(entry, 'done')));
}

/** The names in a list; empty when it is no list. */
export function namesIn(list: unknown): readonly string[] {
  return Array.isArray(list) ? list.filter((name) => typeof name === 'string') : [];
}

/** Parsed JSON; null when it is none: a text that somebody else wrote must not block other entries. */
export function parsed(json: string | null | undefined): unknown {
  try {
    return JSON.parse(json ?? 'null');
  } catch {
    return null;
  }
}
