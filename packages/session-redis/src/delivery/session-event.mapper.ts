import {
  type AttributeSerializer,
  SessionCreatedEvent,
  SessionDeletedEvent,
  type SessionEvent,
  SessionExpiredEvent,
  SessionIdChangedEvent,
  type SessionEventInit,
  SessionSnapshot,
} from '@nest-session/core';
import { toSessionRecord } from '../repository/redis-session.mapper.js';

/** An entry of the events stream: its position, and its fields and values in turn. */
export type StreamEntry = readonly [position: string, fields: readonly string[]];

/** The session an entry is about; undefined when the entry is not one of ours. */
export function sessionIdOf(entry: StreamEntry): string | undefined {
  return fieldsOf(entry).get('session');
}

/**
 * The event of an entry, with the session's data as `hash` has it; undefined for an entry of a kind this version does
 * not know, such as one of a newer instance.
 */
export function toSessionEvent(
  entry: StreamEntry,
  hash: Record<string, string>,
  serializer: AttributeSerializer,
): SessionEvent | undefined {
  const fields = fieldsOf(entry);
  const sessionId = fields.get('session') ?? '';
  const record = toSessionRecord(sessionId, hash);
  const init: SessionEventInit = {
    sessionId,
    at: Number(fields.get('at')),
    session: record ? new SessionSnapshot(record, serializer) : SessionSnapshot.empty(sessionId, serializer),
    dataLost: record === undefined,
  };
  switch (fields.get('type')) {
    case 'created':
      return new SessionCreatedEvent(init);
    case 'deleted':
      return new SessionDeletedEvent(init);
    case 'expired':
      return new SessionExpiredEvent(init);
    case 'id-changed':
      return new SessionIdChangedEvent({ ...init, previousSessionId: fields.get('previous') ?? '' });
    default:
      return undefined;
  }
}

function fieldsOf([, fields]: StreamEntry): Map<string, string> {
  const map = new Map<string, string>();
  for (let i = 0; i + 1 < fields.length; i += 2) map.set(fields[i]!, fields[i + 1]!);
  return map;
}
