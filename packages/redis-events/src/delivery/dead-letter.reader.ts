import { Inject, Injectable } from '@nestjs/common';
import type { DeadLetter } from '@nest-session/core/internal';
import { RequestConnection } from '../connection/request.connection.js';
import { merged } from '../partitions/merged.js';
import { type PartitionKeys, Partitions } from '../partitions/partitions.js';
import {
  byPosition,
  doneBefore,
  fieldOf,
  parsed,
  type StreamEntry,
  timeOf,
  toStreamEntry,
} from '../scripts/stream/stream-entry.js';
import type { EventProducer } from './event-producer.js';

/** Entries per call, shared by all partitions. */
const PAGE = 100;
const SMALLEST_PAGE = 10;

type Place = Pick<StreamEntry, 'partition' | 'position'>;

export type DeadLetterBounds = ReadonlyMap<PartitionKeys, string>;

/** Reads the dead letters of all partitions, the oldest first, and finds them by their ids. */
@Injectable()
export class DeadLetterReader {
  constructor(
    @Inject(RequestConnection) private readonly connection: RequestConnection,
    @Inject(Partitions) private readonly partitions: Partitions,
  ) {}

  /** The unique id of a dead letter: its position and the number of its partition. */
  idOf({ partition, position }: Place): string {
    return `${position}-${this.partitions.all.indexOf(partition)}`;
  }

  /** The place of the dead letter with an id, which may be empty; undefined when the text cannot be an id. */
  placeOf(id: string): Place | undefined {
    const [, position = '', number] = /^(\d{1,19}-\d{1,19})-(\d{1,4})$/.exec(id) ?? [];
    const partition = this.partitions.all[Number(number)];
    return partition && { partition, position };
  }

  async bounds(): Promise<DeadLetterBounds> {
    const { all } = this.partitions;
    const last = await Promise.all(
      all.map(({ deadLetters }) =>
        this.connection.run((client) => client.xrevrange(deadLetters, '+', '-', 'COUNT', 1), deadLetters),
      ),
    );
    return new Map(all.flatMap((partition, i) => last[i]!.map(([position]) => [partition, position])));
  }

  /** The dead letters after the one with the id `after`, the oldest first. @throws RangeError when `after` is no id */
  async *read({ after, bounds }: { after?: string; bounds?: DeadLetterBounds } = {}): AsyncIterable<StreamEntry> {
    const { all } = this.partitions;
    const starts = this.#startsBehind(after);
    const ends = all.map((partition) => (bounds ? bounds.get(partition) : '+'));
    const sources = all.map((partition, i) => this.#readIn(partition, starts[i]!, ends[i]));
    yield* merged(sources, byPosition);
  }

  async *#readIn(partition: PartitionKeys, start: string, end: string | undefined): AsyncGenerator<StreamEntry, void> {
    if (end === undefined) return;
    const size = Math.max(SMALLEST_PAGE, Math.ceil(PAGE / this.partitions.all.length));
    for (let from = start; ;) {
      const { deadLetters } = partition;
      const page = await this.connection.run(
        (client) => client.xrange(deadLetters, from, end, 'COUNT', size),
        deadLetters,
      );
      for (const entry of page) yield toStreamEntry(partition, entry);
      if (page.length < size) return;
      from = `(${page.at(-1)![0]}`;
    }
  }

  /** Of two dead letters at the same position, the lower partition number comes first. */
  #startsBehind(after: string | undefined): string[] {
    const { all } = this.partitions;
    if (after === undefined) return all.map(() => '-');
    const place = this.placeOf(after);
    if (!place) throw new RangeError('`after` must be the id of a dead letter');
    const last = all.indexOf(place.partition);
    return all.map((_, i) => (i <= last ? `(${place.position}` : place.position));
  }
}

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
