import { JsonAttributeSerializer } from '@nest-session/core';
import type { SessionEventDispatcher } from '@nest-session/core/store';
import type { SessionEncryption } from '../../src/encryption/session-encryption.js';
import type { PartitionKeys } from '../../../redis-events/src/partitions/partitions.js';
import {
  EventStreamScripts,
  type TakeCleanupTurnReply,
} from '../../../redis-events/src/scripts/event-stream.scripts.js';
import type { StreamEntry } from '../../../redis-events/src/scripts/stream/stream-entry.js';
import { SESSION_ENTRIES, SessionEventProducer } from '../../src/session-events/session-event-producer.js';
import { GRACE, RETENTION, type Store } from './store.fixture.js';

export { SESSION_ENTRIES };

/** The producer of session events, without handlers. */
export function sessionEvents(encryption?: SessionEncryption): SessionEventProducer {
  const stored = { serializer: new JsonAttributeSerializer(), ...(encryption && { encryption }) };
  return new SessionEventProducer({} as SessionEventDispatcher, stored);
}

/** An entry that tells of a session, of which nothing else matters. */
export function entryOf(partition: PartitionKeys, position: string, sessionId: string): StreamEntry {
  return { partition, position, fields: ['session', sessionId] };
}

/** Takes the turn of a partition for a millisecond. */
export function takeCleanupTurn(
  { client }: Store,
  partition: PartitionKeys,
  maxLength = 100,
): Promise<TakeCleanupTurnReply> {
  const limits = { grace: GRACE, retention: RETENTION, maxLength };
  return new EventStreamScripts(client, SESSION_ENTRIES).takeCleanupTurn(partition, 'me', 1, limits);
}
