import type { DeadLetter } from '@nest-session/core/internal';
import { doneBefore, fieldOf, parsed, type StreamEntry } from '../scripts/stream/stream-entry.js';
import type { EventProducer } from './event-producer.js';
import { timeOf } from './stream-position.js';

/** The dead letter in an entry. */
export function toDeadLetter<Event>(
  id: string,
  entry: StreamEntry,
  producer: Pick<EventProducer<Event>, 'toEvent'>,
): DeadLetter<Event> {
  const data = (parsed(fieldOf(entry, 'data')) ?? {}) as Record<string, string>;
  const size = fieldOf(entry, 'dataSize');
  const attempts = Number(fieldOf(entry, 'attempts') ?? 0);
  return {
    id,
    at: timeOf(entry.position),
    reason: fieldOf(entry, 'reason') ?? '',
    group: fieldOf(entry, 'group'),
    handler: fieldOf(entry, 'handler'),
    attempts,
    succeeded: doneBefore(entry),
    event: producer.toEvent(entry, data, Math.max(1, attempts)),
    omittedBytes: size === undefined ? undefined : Number(size),
    member: fieldOf(entry, 'member'),
  };
}
