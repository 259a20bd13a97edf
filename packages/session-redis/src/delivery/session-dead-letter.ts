import type { AttributeSerializer, SessionEvent } from '@nest-session/core';
import { toSessionEvent } from './session-event.mapper.js';
import { doneBefore, fieldOf, parsed, type StreamEntry } from './stream-entry.js';
import { timeOf } from './stream-position.js';

/** An event that a group could not handle; or something that stood in the place of a session and is none. */
export interface SessionDeadLetter {
  /** What `replay()` and `discard()` are given. */
  readonly id: string;
  /** When it was set aside: epoch ms by Redis' clock. */
  readonly at: number;
  /** Why. */
  readonly reason: string;
  /** The group that could not handle it; undefined when it is no event. */
  readonly group: string | undefined;
  /** How often it was tried; 0 when it is no event. */
  readonly attempts: number;
  /** The handlers that did succeed: a replay does not call them again. */
  readonly succeeded: readonly string[];
  /** With the data that the session had then; undefined for an event of a newer version, and when it is none. */
  readonly event: SessionEvent | undefined;
  /** What it is when it is no event: the member of a bucket, or a key. */
  readonly member: string | undefined;
}

/** The dead letter in an entry of their stream. */
export function toDeadLetter(id: string, entry: StreamEntry, serializer: AttributeSerializer): SessionDeadLetter {
  const data = (parsed(fieldOf(entry, 'data')) ?? {}) as Record<string, string>;
  return {
    id,
    at: timeOf(entry.position),
    reason: fieldOf(entry, 'reason') ?? '',
    group: fieldOf(entry, 'group'),
    attempts: Number(fieldOf(entry, 'attempts') ?? 0),
    succeeded: doneBefore(entry),
    event: toSessionEvent(entry, data, serializer),
    member: fieldOf(entry, 'member'),
  };
}
