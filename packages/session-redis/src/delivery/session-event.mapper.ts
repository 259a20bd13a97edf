import {
  type AttributeSerializer,
  SessionCreatedEvent,
  SessionDeletedEvent,
  type SessionEvent,
  SessionExpiredEvent,
  SessionIdChangedEvent,
} from '@nest-session/core';
import { type SessionEventInit, type SessionIds, SessionSnapshot } from '@nest-session/core/store';
import { toSessionRecord } from '../repository/redis-session.mapper.js';
import { fieldOf, sessionIdOf, type StreamEntry } from './stream-entry.js';

/**
 * The event of an entry, with the session's data in `hash`; undefined for an entry of a kind that this version does not
 * know, such as one of a newer version.
 * `ids` shows the session id in log lines about undecodable attributes, and `attempt` is the one that follows.
 */
export function toSessionEvent(
  entry: StreamEntry,
  hash: Record<string, string>,
  serializer: AttributeSerializer,
  { ids, attempt = 1 }: { readonly ids?: SessionIds | undefined; readonly attempt?: number } = {},
): SessionEvent | undefined {
  const sessionId = sessionIdOf(entry) ?? '';
  const record = toSessionRecord(sessionId, hash);
  const init: SessionEventInit = {
    sessionId,
    at: Number(fieldOf(entry, 'at')),
    session: record ? new SessionSnapshot(record, serializer, ids) : SessionSnapshot.empty(sessionId, serializer),
    dataLost: record === undefined,
    attempt,
  };
  switch (fieldOf(entry, 'type')) {
    case 'created':
      return new SessionCreatedEvent(init);
    case 'deleted':
      return new SessionDeletedEvent(init);
    case 'expired':
      return new SessionExpiredEvent(init);
    case 'id-changed':
      return new SessionIdChangedEvent({ ...init, previousSessionId: fieldOf(entry, 'previous') ?? '' });
    default:
      return undefined;
  }
}
