import {
  type AttributeSerializer,
  SessionCreatedEvent,
  SessionDeletedEvent,
  type SessionEvent,
  SessionExpiredEvent,
  SessionIdChangedEvent,
} from '@nest-session/core';
import type { SessionEventInit, SessionIds } from '@nest-session/core/internal';
import { SessionSnapshot } from '@nest-session/core/store';
import type { SessionEncryption } from '../encryption/session-encryption.js';
import { toSessionRecord } from '../repository/session-hash.js';
import { fieldOf, sessionIdOf, type StreamEntry } from './stream-entry.js';

export interface EventDetails {
  /** Shows the session id in log lines about undecodable attributes. */
  readonly ids?: SessionIds | undefined;
  /** @default none */
  readonly encryption?: SessionEncryption | undefined;
  /** The one that follows. */
  readonly attempt?: number;
}

/**
 * The event of an entry, with the session's data in `hash`; undefined for an entry of a kind that this version does not
 * know, such as one of a newer version.
 */
export function toSessionEvent(
  entry: StreamEntry,
  hash: Record<string, string>,
  serializer: AttributeSerializer,
  { ids, encryption, attempt = 1 }: EventDetails = {},
): SessionEvent | undefined {
  const sessionId = sessionIdOf(entry) ?? '';
  const stored = toSessionRecord(sessionId, hash);
  // A missing key fails the handler that reads an attribute, so that the event is kept and handled again.
  const record = stored && encryption ? encryption.decrypted(stored) : stored;
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
