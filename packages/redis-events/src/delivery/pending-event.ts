import { doneBefore, groupOf, namesIn, parsed, type StreamEntry } from '../scripts/stream/stream-entry.js';

/** An entry that this instance must handle. */
export interface PendingEvent {
  readonly entry: StreamEntry;
  /** Whether it was delivered before, or replayed. */
  readonly redelivered: boolean;
  /** Number of attempts that failed. */
  readonly failures: number;
  /** Number of deliveries whose instance ended before it settled the entry. */
  readonly abandoned: number;
  /** The names of the handlers that have succeeded. */
  readonly done: readonly string[];
}

/** `deliveries`: the number of earlier ones; `record`: what `failing` holds of its failures, as JSON. */
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
