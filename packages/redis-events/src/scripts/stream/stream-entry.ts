import type { PartitionKeys } from '../../partitions/partitions.js';

/** What the delivery has to know of the entries of a producer, each of which has a `type`. */
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
  readonly keyPrefix: string;
  /** The field of an entry with the rest of the key. */
  readonly idField: string;
  /** The field that the hash has when only the entry still needs it. */
  readonly endField: string;
  /** The types of the entries with which the hash goes, when it has that field. */
  readonly endTypes: readonly string[];
}

export type StreamReply = readonly [position: string, fields: readonly string[]];

export interface StreamEntry {
  readonly partition: PartitionKeys;
  /** The entry id of Redis; entries of other partitions may have the same. */
  readonly position: string;
  readonly fields: readonly string[];
}

export function toStreamEntry(partition: PartitionKeys, [position, fields]: StreamReply): StreamEntry {
  return { partition, position, fields };
}

export function nameOf({ partition, position }: StreamEntry): string {
  return `${partition.events}/${position}`;
}

export function fieldOf({ fields }: StreamEntry, name: string): string | undefined {
  const index = fields.findIndex((field, i) => i % 2 === 0 && field === name);
  return index < 0 ? undefined : fields[index + 1];
}

export function dataKeyOf({ data }: EntryKind, entry: StreamEntry): string | undefined {
  const id = data && fieldOf(entry, data.idField);
  return id === undefined ? undefined : entry.partition.prefix + data!.keyPrefix + id;
}

/** Of a replayed entry. */
export function groupOf(entry: StreamEntry): string | undefined {
  return fieldOf(entry, 'group');
}

/** Before the entry was replayed. */
export function doneBefore(entry: StreamEntry): readonly string[] {
  return namesIn(parsed(fieldOf(entry, 'done')));
}

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

export function textsIn(json: string | undefined): Record<string, string> {
  const fields = Object.entries(Object(parsed(json)) as object);
  return Object.fromEntries(fields.filter((field): field is [string, string] => typeof field[1] === 'string'));
}

/** A position in a stream, which begins with a time: epoch ms. */
export type Position = readonly [ms: number, sequence: number];

export function timeOf(position: string): number {
  return positionOf(position)[0];
}

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

export function isLater([ms, sequence]: Position, [otherMs, otherSequence]: Position): boolean {
  return ms > otherMs || (ms === otherMs && sequence > otherSequence);
}
