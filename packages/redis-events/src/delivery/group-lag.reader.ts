import { Inject, Injectable } from '@nestjs/common';
import { RequestConnection } from '../connection/request.connection.js';
import { Partitions } from '../partitions/partitions.js';
import type { ScriptsOn } from '../scripts/define-scripts.js';
import type { EventStreamScripts, LookReply } from '../scripts/stream/event-stream.scripts.js';
import { REQUEST_STREAM_SCRIPTS } from './delivery.tokens.js';

/** How far a group is with its events, and what it has lost, in all partitions together. */
export interface GroupLag {
  /** The option `events.group` of its instances. */
  readonly name: string;
  /** Number of events that it has not read. In each partition, at most 100 are counted. */
  readonly lag: number;
  /** The age of the oldest of them in milliseconds, by Redis' clock; 0 when it has read all. */
  readonly oldestUnreadAge: number;
  /** Number of events that it has read and not finished, including those that wait for a retry. */
  readonly pending: number;
  /** Number of events that wait for a retry. */
  readonly retrying: number;
  /** Number of its dead letters. */
  readonly deadLetters: number;
  /** Number of events that were removed before it had handled them. */
  readonly dropped: number;
  /** Number of its dead letters that were removed before anybody had dealt with them. */
  readonly lostDeadLetters: number;
}

/** Unread events of a group that are counted in each partition: 1,000 would block Redis for 4 ms. */
const MOST_COUNTED = 100;

/** Reads how far the groups are behind, with one command in each partition. */
@Injectable()
export class GroupLagReader {
  constructor(
    @Inject(RequestConnection) private readonly connection: RequestConnection,
    @Inject(REQUEST_STREAM_SCRIPTS) private readonly scripts: ScriptsOn<EventStreamScripts>,
    @Inject(Partitions) private readonly partitions: Partitions,
  ) {}

  /** All groups, ordered by name. */
  async read(): Promise<GroupLag[]> {
    const replies = await this.connection.runInAll(this.partitions, (client, keys) =>
      this.scripts(client).lookAtGroups(keys, MOST_COUNTED),
    );
    const groups = new Map<string, GroupLag>();
    for (const reply of replies.flat()) {
      const reading = toReading(reply);
      const known = groups.get(reading.name);
      groups.set(reading.name, known ? together(known, reading) : reading);
    }
    return [...groups.keys()].toSorted().map((name) => groups.get(name)!);
  }
}

function toReading([name, ...numbers]: LookReply): GroupLag {
  const [lag = 0, oldestUnreadAge = 0, pending = 0, retrying = 0, deadLetters = 0, dropped = 0, lost = 0] = numbers;
  return { name, lag, oldestUnreadAge, pending, retrying, deadLetters, dropped, lostDeadLetters: lost };
}

function together(one: GroupLag, other: GroupLag): GroupLag {
  return {
    name: one.name,
    lag: one.lag + other.lag,
    oldestUnreadAge: Math.max(one.oldestUnreadAge, other.oldestUnreadAge),
    pending: one.pending + other.pending,
    retrying: one.retrying + other.retrying,
    deadLetters: one.deadLetters + other.deadLetters,
    dropped: one.dropped + other.dropped,
    lostDeadLetters: one.lostDeadLetters + other.lostDeadLetters,
  };
}
