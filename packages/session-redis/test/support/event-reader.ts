import type { Redis } from 'ioredis';
import { type HeardSignals, UnreadEventReader } from '../../../redis-events/src/delivery/partition-turns.js';
import type { SessionPartitions } from '../../src/keys/session-partitions.js';
import type { ConsumerIdentity } from '../../../redis-events/src/scripts/event-stream.scripts.js';

/** The reader that an application has with so many partitions. */
export function eventReader(
  client: Redis,
  partitions: SessionPartitions,
  member: ConsumerIdentity,
  signals: HeardSignals,
): UnreadEventReader {
  return new UnreadEventReader({ reader: client, background: client }, partitions, member, signals);
}
