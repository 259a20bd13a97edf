import type { Redis } from 'ioredis';
import type { PartitionKeys } from '@nest-session/redis-events/internal';
import type { VerificationScripts } from '../scripts/verification/verification.scripts.js';
import { DAY, type FoundKey, type KeyKind, type Look, lookAt, MINUTE, withoutValues } from './key-kind.js';

const PER_CALL = 50;

/** The keys that every partition has: those of events, groups and dead letters. */
export function eventKinds(client: Redis, scripts: VerificationScripts): KeyKind<PartitionKeys>[] {
  const ofGroup = ({ partition, part }: FoundKey<PartitionKeys>) => {
    return (positions: readonly string[]) => scripts.group(partition, part, positions);
  };
  return [
    { name: /^cleanup$/, type: 'string', life: 10 * MINUTE },
    {
      name: /^events$/,
      type: 'stream',
      life: 'never',
      contents: ({ partition }) => pendingEvents(client, scripts, partition),
    },
    {
      name: /^events:failing:([^]+)$/,
      type: 'hash',
      life: 'never',
      contents: (found) =>
        lookAt((cursor) => withoutValues(client.hscan(found.key, cursor, 'COUNT', PER_CALL)), ofGroup(found)),
    },
    {
      name: /^events:retries:([^]+)$/,
      type: 'zset',
      life: 'never',
      contents: (found) =>
        lookAt((cursor) => withoutValues(client.zscan(found.key, cursor, 'COUNT', PER_CALL)), ofGroup(found)),
    },
    { name: /^events:(?:handlers|wanted|thinned|dropped)$/, type: 'hash', life: 'never' },
    { name: /^events:trimmed$/, type: 'string', life: 'never' },
    { name: /^events:wanted:broadcast:[^]+$/, type: 'string', life: DAY },
    { name: /^events:dead$/, type: 'stream', life: 'never', contents: ({ partition }) => letters(scripts, partition) },
    {
      name: /^events:dead:index$/,
      type: 'zset',
      life: 'never',
      contents: (found) => letterIndex(client, scripts, found),
    },
    {
      name: /^events:dead:sizes$/,
      type: 'hash',
      life: 'never',
      contents: async function* ({ partition }) {
        yield { items: 1, problems: await scripts.letterRecords(partition, []) };
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
  for (const group of await groupsOf(client, partition)) {
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

async function groupsOf(client: Redis, { events }: PartitionKeys): Promise<string[]> {
  const groups = (await client.xinfo('GROUPS', events)) as string[][];
  return groups.map((fields) => fields[fields.indexOf('name') + 1]!);
}

/** The bytes of each kind are looked at where they are recorded, and here where that is gone. */
async function* letterIndex(
  client: Redis,
  scripts: VerificationScripts,
  { key, partition }: FoundKey<PartitionKeys>,
): AsyncIterable<Look> {
  yield* lookAt(
    (cursor) => withoutValues(client.zscan(key, cursor, 'COUNT', PER_CALL)),
    (members) => scripts.letterRecords(partition, members),
  );
  if ((await client.exists(`${partition.deadLetters}:sizes`)) > 0) return;
  yield { items: 1, problems: await scripts.letterRecords(partition, []) };
}

async function* letters(scripts: VerificationScripts, partition: PartitionKeys): AsyncIterable<Look> {
  let after: string | undefined = '0-0';
  while (after !== undefined) {
    const { last, problems } = await scripts.letters(partition, after);
    yield { items: 1, problems };
    after = last;
  }
}
