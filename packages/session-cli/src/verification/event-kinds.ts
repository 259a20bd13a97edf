import type { PartitionKeys } from '@nest-session/redis-events/internal';
import type { Redis } from 'ioredis';
import type { VerificationScripts } from '../scripts/verification/verification.scripts.js';
import { DAY, type FoundKey, type KeyKind, keys, type Look, MINUTE, PER_CALL } from './key-kind.js';

type Found = FoundKey<PartitionKeys>;

/** The keys that every partition has: those of events, groups and dead letters. */
export function eventKinds(client: Redis, scripts: VerificationScripts): KeyKind<PartitionKeys>[] {
  const ofGroup = ({ partition, part }: Found, positions: readonly string[]) =>
    scripts.group(partition, part, positions);
  const bytes = async ({ partition }: Found) => ({ items: 1, problems: await scripts.letterRecords(partition, []) });
  return [
    keys(/^cleanup$/, 'string', 10 * MINUTE),
    keys(/^events$/, 'stream', 'never', { contents: ({ partition }) => pendingEvents(client, scripts, partition) }),
    keys(/^events:failing:([^]+)$/, 'hash', 'never', { items: ofGroup }),
    keys(/^events:retries:([^]+)$/, 'zset', 'never', { items: ofGroup }),
    keys(/^events:(?:handlers|wanted|thinned|dropped)$/, 'hash', 'never'),
    keys(/^events:trimmed$/, 'string', 'never'),
    keys(/^events:wanted:broadcast:[^]+$/, 'string', DAY),
    keys(/^events:dead$/, 'stream', 'never', { contents: ({ partition }) => letters(scripts, partition) }),
    keys(/^events:dead:index$/, 'zset', 'never', {
      items: ({ partition }, members) => scripts.letterRecords(partition, members),
      // The bytes of each kind are looked at where they are recorded, and here where that is gone.
      contents: async function* (found) {
        if ((await client.exists(`${found.partition.deadLetters}:sizes`)) === 0) yield bytes(found);
      },
    }),
    keys(/^events:dead:sizes$/, 'hash', 'never', {
      contents: async function* (found) {
        yield bytes(found);
      },
    }),
    keys(/^events:dead:(?:lost|unreported)$/, 'hash', 'never'),
  ];
}

async function* pendingEvents(
  client: Redis,
  scripts: VerificationScripts,
  partition: PartitionKeys,
): AsyncIterable<Look> {
  const groups = (await client.xinfo('GROUPS', partition.events)) as string[][];
  for (const group of groups.map((fields) => fields[fields.indexOf('name') + 1]!)) {
    let from = '-';
    for (;;) {
      const pending = (await client.xpending(partition.events, group, from, '+', PER_CALL)) as [string, ...unknown[]][];
      if (pending.length === 0) break;
      const positions = pending.map(([position]) => position);
      yield { items: positions.length, problems: await scripts.group(partition, group, positions) };
      from = `(${positions.at(-1)!}`;
    }
  }
}

async function* letters(scripts: VerificationScripts, partition: PartitionKeys): AsyncIterable<Look> {
  let after: string | undefined = '0-0';
  while (after !== undefined) {
    const { last, problems } = await scripts.letters(partition, after);
    yield { items: 1, problems };
    after = last;
  }
}
