import { doneBefore, groupOf, namesIn, parsed, type StreamEntry } from './stream-entry.js';

/** An entry that an instance is to handle. */
export interface PendingEvent {
  readonly entry: StreamEntry;
  /** An instance has had it before, or it was replayed. */
  readonly redelivered: boolean;
  /** How often handlers of it have failed. */
  readonly failures: number;
  /** How often it was in the hands of an instance that did not live to say how it ended. */
  readonly abandoned: number;
  /** The names of the handlers that have succeeded. */
  readonly done: readonly string[];
}

/** From an entry, how often it was delivered before, and what is recorded of its failures. */
export function toPendingEvent(entry: StreamEntry, deliveries = 0, record: string | null = null): PendingEvent {
  const { attempts, done } = (parsed(record) ?? {}) as { readonly attempts?: unknown; readonly done?: unknown };
  const failures = Number(attempts ?? 0);
  return {
    entry,
    redelivered: deliveries > 0 || groupOf(entry) !== undefined,
    failures,
    abandoned: deliveries - failures,
    done: [...new Set([...doneBefore(entry), ...namesIn(done)])],
  };
}
