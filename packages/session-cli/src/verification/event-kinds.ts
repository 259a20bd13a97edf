import type { PartitionKeys } from '@nest-session/redis-events/internal';
import type { Redis } from 'ioredis';
import type { VerificationScripts } from '../scripts/verification/verification.scripts.js';
import { DAY, type FoundKey, type KeyKind, type Look, MINUTE, PER_CALL } from './key-kind.js';

type Found = FoundKey<PartitionKeys>;

/** The keys that every partition has: those of events, groups and dead letters. */
export function eventKinds(client: Redis, scripts: VerificationScripts): KeyKind<PartitionKeys>[] {
  const ofGroup = ({ partition, part }: Found, positions: readonly string[]) =>
    scripts.group(partition, part, positions);
  const bytes = async ({ partition }: Found) => ({ items: 1, problems: await scripts.letterRecords(partition, []) });
  return [
    { name: /^cleanup$/, type: 'string', life: 10 * MINUTE },
    {
      name: /^events$/,
      type: 'stream',
      life: 'never',
      contents: ({ partition }) => pendingEvents(client, scripts, partition),
    },
    { name: /^events:failing:([^]+)$/, type: 'hash', life: 'never', items: ofGroup },
    { name: /^events:retries:([^]+)$/, type: 'zset', life: 'never', items: ofGroup },
    { name: /^events:(?:handlers|wanted|thinned|dropped)$/, type: 'hash', life: 'never' },
    { name: /^events:trimmed$/, type: 'string', life: 'never' },
    { name: /^events:wanted:broadcast:[^]+$/, type: 'string', life: DAY },
    { name: /^events:dead$/, type: 'stream', life: 'never', contents: ({ partition }) => letters(scripts, partition) },
    {
      name: /^events:dead:index$/,
      type: 'zset',
      life: 'never',
      items: ({ partition }, members) => scripts.letterRecords(partition, members),
      // The bytes of each kind are looked at where they are recorded, and here where that is gone.
      contents: async function* (found) {
        if ((await client.exists(`${found.partition.deadLetters}:sizes`)) === 0) yield bytes(found);
      },
    },
    {
      name: /^events:dead:sizes$/,
      type: 'hash',
      life: 'never',
      contents: async function* (found) {
        yield bytes(found);
      },
    },
    { name: /^events:dead:(?:lost|unreported)$/, type: 'hash', life: 'never' },
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
