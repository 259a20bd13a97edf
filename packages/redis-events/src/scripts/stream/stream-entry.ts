import type { PartitionKeys } from '../../partitions/partitions.js';

/** What the entries of a producer have in common, as far as the delivery has to know it. Each entry has a `type`. */
export interface EntryKind {
  /** All types: a new group wants them until its instances have told what they want. */
  readonly types: readonly string[];
  /** Those that any client can cause without limit: beyond the maximum length, they make room for the others. */
  readonly makingRoom: readonly string[];
  /** Those that the producer records only while somebody wants them. */
  readonly onDemand: readonly string[];
  /** The sorted sets with what is due, by epoch ms: their keys after the prefix of the partition. */
  readonly dueSets: readonly string[];
  /** The hash that an entry refers to, if entries do not bring their data themselves. */
  readonly data?: EntryData;
}

interface EntryData {
  /** What the key of the hash begins with, after the prefix of the partition. */
  readonly keyPrefix: string;
  /** The field of an entry with the rest of the key. */
  readonly idField: string;
  /** The field that the hash has when only the entry still needs it. */
  readonly endField: string;
  /** The types of the entries with which the hash goes, when it has that field. */
  readonly endTypes: readonly string[];
}

/** An entry as Redis replies it, with fields and values in turn. */
export type StreamReply = readonly [position: string, fields: readonly string[]];

/** An entry of the events stream of a partition, or of its dead letters. */
export interface StreamEntry {
  readonly partition: PartitionKeys;
  /** The entry id of Redis; entries of other partitions may have the same. */
  readonly position: string;
  /** Fields and values in turn. */
  readonly fields: readonly string[];
}

export function toStreamEntry(partition: PartitionKeys, [position, fields]: StreamReply): StreamEntry {
  return { partition, position, fields };
}

/** The unique name of an entry, for maps and for the log. */
export function nameOf({ partition, position }: StreamEntry): string {
  return `${partition.events}/${position}`;
}

export function fieldOf({ fields }: StreamEntry, name: string): string | undefined {
  const index = fields.findIndex((field, i) => i % 2 === 0 && field === name);
  return index < 0 ? undefined : fields[index + 1];
}

/** The key of the hash with the data of an entry; undefined when it refers to none. */
export function dataKeyOf({ data }: EntryKind, entry: StreamEntry): string | undefined {
  const id = data && fieldOf(entry, data.idField);
  return id === undefined ? undefined : entry.partition.prefix + data!.keyPrefix + id;
}

/** The only group that handles a replayed entry; undefined for any other entry. */
export function groupOf(entry: StreamEntry): string | undefined {
  return fieldOf(entry, 'group');
}

/** The names of the handlers that had succeeded before the entry was replayed. */
export function doneBefore(entry: StreamEntry): readonly string[] {
  return namesIn(parsed(fieldOf(entry, 'done')));
}

/** The names in a list; empty when it is no list. */
export function namesIn(list: unknown): readonly string[] {
  return Array.isArray(list) ? list.filter((name) => typeof name === 'string') : [];
}

/** Parsed JSON; null when it is none: a text that somebody else wrote must not block other entries. */
export function parsed(json: string | null | undefined): unknown {
  try {
    return JSON.parse(json ?? 'null');
  } catch {
    return null;
  }
}

/** The fields of a record in JSON that are texts; none when it is no record. */
export function textsIn(json: string | undefined): Record<string, string> {
  const fields = Object.entries(Object(parsed(json)) as object);
  return Object.fromEntries(fields.filter((field): field is [string, string] => typeof field[1] === 'string'));
}

/** A position in a stream, which begins with a time: epoch ms. */
export type Position = readonly [ms: number, sequence: number];

/** When the entry at a position was added: epoch ms. */
export function timeOf(position: string): number {
  return positionOf(position)[0];
}

/** Orders entries of several streams by the time when they were added. */
export function byPosition(one: { readonly position: string }, other: { readonly position: string }): number {
  const [ms, sequence] = positionOf(one.position);
  const [otherMs, otherSequence] = positionOf(other.position);
  return ms - otherMs || sequence - otherSequence;
}

export function positionOf(text: string): Position {
  const [ms, sequence] = text.split('-');
  return [Number(ms), Number(sequence)];
}

export function positionText([ms, sequence]: Position): string {
  return `${ms}-${sequence}`;
}

/** Whether a position comes after another one. */
export function isLater([ms, sequence]: Position, [otherMs, otherSequence]: Position): boolean {
  return ms > otherMs || (ms === otherMs && sequence > otherSequence);
}
