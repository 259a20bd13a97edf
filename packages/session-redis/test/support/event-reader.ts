import type { Redis } from 'ioredis';
import type { HeardSignals } from '../../../redis-events/src/delivery/partition-turns.js';
import {
  BlockingEventReader,
  SignalledEventReader,
  type UnreadEventReader,
} from '../../../redis-events/src/delivery/event-arrivals.js';
import type { SessionPartitions } from '../../src/keys/session-partitions.js';
import type { ConsumerIdentity } from '../../../redis-events/src/scripts/event-stream.scripts.js';

/** The reader that an application has with so many partitions. */
export function eventReader(
  client: Redis,
  { all }: SessionPartitions,
  member: ConsumerIdentity,
  signals: HeardSignals,
): UnreadEventReader {
  return all.length === 1
    ? new BlockingEventReader(client, all[0]!, member)
    : new SignalledEventReader(client, all, member, signals);
}
