import type { PartitionKeys } from '@nest-session/redis-events/internal';
import { pages, type ReadPage } from '@nest-session/redis/internal';
import type { ExpectedKey, Problem } from '../scripts/verification/verification.scripts.js';

/** A key whose kind is known. */
export interface FoundKey<Keys extends PartitionKeys> {
  readonly key: string;
  readonly partition: Keys;
  /** The id, minute, name or group in its name; empty where there is none. */
  readonly part: string;
}

/** What was looked at in one call. */
export interface Look {
  readonly items: number;
  readonly problems: readonly Problem[];
}

/** The keys of one kind, and what looks at them. */
export interface KeyKind<Keys extends PartitionKeys> extends Pick<ExpectedKey, 'type' | 'life'> {
  /** Matches the name after the prefix of the partition, exactly: another namespace may begin with this one. */
  readonly name: RegExp;
  /** Looks at some of the keys, which are in one partition. */
  readonly verify?: (partition: Keys, parts: readonly string[]) => Promise<Problem[]>;
  /** Looks at what is in a key, a few items at a time. */
  readonly contents?: (found: FoundKey<Keys>) => AsyncIterable<Look>;
}

export const MINUTE = 60_000;
export const DAY = 86_400_000;

/** Looks at the items of a scan, page by page. */
export async function* lookAt(
  read: ReadPage,
  verify: (items: readonly string[]) => Promise<Problem[]>,
): AsyncIterable<Look> {
  for await (const items of pages(read)) {
    if (items.length > 0) yield { items: items.length, problems: await verify(items) };
  }
}

/** Every other item: the members of a ZSCAN, the fields of an HSCAN. */
export async function withoutValues(reply: Promise<[string, string[]]>): Promise<[string, string[]]> {
  const [cursor, items] = await reply;
  return [cursor, items.filter((_, i) => i % 2 === 0)];
}
