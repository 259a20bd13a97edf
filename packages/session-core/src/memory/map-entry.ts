import type { DeleteSession } from '../session/session-change.js';

/** What the memory has of a session. */
export interface MapEntry {
  id: string;
  readonly creationTime: number;
  lastAccessedTime: number;
  authenticatedAt: number | undefined;
  /** Greater than that of every session that began, or was signed in to, before. */
  order: number;
  maxInactiveInterval: number;
  /** When its absolute timeout passes, in epoch milliseconds; Infinity for never. */
  absoluteExpiry: number;
  /** When it expires, in epoch milliseconds; Infinity for never. */
  deadline: number;
  readonly attributes: Map<string, string>;
  /** By the name of an index, the value under which it lists the session. */
  readonly indexes: Map<string, string>;
  device: string | undefined;
}

/** False where a session must be listed, and is not. */
export function isListed({ indexes }: MapEntry, { listed }: DeleteSession): boolean {
  return !listed || indexes.get(listed.indexName) === listed.value;
}

export function apply(changes: ReadonlyMap<string, string | null>, entries: Map<string, string>): void {
  for (const [name, text] of changes) {
    if (text === null) entries.delete(name);
    else entries.set(name, text);
  }
}
