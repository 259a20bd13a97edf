import type { SessionKeys } from '../keys/session-keys.js';
import type { StreamReply } from '../scripts/stream/event-stream.scripts.js';

/** An entry of the events stream of a partition, or of its dead letters. */
export interface StreamEntry {
  readonly partition: SessionKeys;
  /** Where it stands in the stream; entries of other partitions may have the same. */
  readonly position: string;
  /** Its fields and values in turn. */
  readonly fields: readonly string[];
}

export function toStreamEntry(partition: SessionKeys, [position, fields]: StreamReply): StreamEntry {
  return { partition, position, fields };
}

/** What tells an entry of the events streams from all others. */
export function nameOf({ partition, position }: StreamEntry): string {
  return `${partition.events}/${position}`;
}

export function fieldOf({ fields }: StreamEntry, name: string): string | undefined {
  const index = fields.findIndex((field, i) => i % 2 === 0 && field === name);
  return index < 0 ? undefined : fields[index + 1];
}

/** The session an entry is about; undefined when the entry is not one of ours. */
export function sessionIdOf(entry: StreamEntry): string | undefined {
  return fieldOf(entry, 'session');
}

/** The group that an entry is for alone, because it was replayed after that had failed. */
export function groupOf(entry: StreamEntry): string | undefined {
  return fieldOf(entry, 'group');
}

/** The names of the handlers that had succeeded before. */
export function doneBefore(entry: StreamEntry): readonly string[] {
  return namesIn(parsed(fieldOf(entry, 'done')));
}

/** The names in a list of them. */
export function namesIn(list: unknown): readonly string[] {
  return Array.isArray(list) ? list.filter((name) => typeof name === 'string') : [];
}

/** What is no JSON is as good as nothing: what somebody else has written must not be in the way of other entries. */
export function parsed(json: string | null | undefined): unknown {
  try {
    return JSON.parse(json ?? 'null');
  } catch {
    return null;
  }
}
