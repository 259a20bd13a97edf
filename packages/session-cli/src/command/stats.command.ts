import { shownText } from '@nest-session/core/internal';
import { type Partitions, shownContent } from '@nest-session/redis-events/internal';
import { columns } from './columns.js';
import type { CommandCall, ExitCode } from './command.js';
import { type KindOfKeys, sampleKeys } from './key-sample.js';
import { instanceStates } from './instance-states.js';
import { type OpenStore, withStore } from './store-access.js';
import { contentOf } from './store-content.js';
import { storeEvents } from './store-events.js';
import { shownBytes, shownDuration } from './shown-time.js';
import { wholeNumber } from './whole-number.js';

/** How much there is in a namespace. */
export function run(call: CommandCall): Promise<ExitCode> {
  const { sample = '1000' } = call.values;
  const size = wholeNumber('sample', sample, { atMost: 100_000 });
  return withStore<ExitCode>(call, async (store) => {
    const stats = await read(call, store, size);
    call.output.report(stats, linesOf(stats));
    return 0;
  });
}

async function read(call: CommandCall, store: OpenStore, size: number) {
  const { partitions, connection } = store;
  const every: Pick<Partitions, 'all'> = partitions;
  const [content, events, dead, groups, instances] = await Promise.all([
    contentOf(store),
    connection.runInAll(every, (client, keys) => client.xlen(keys.events)),
    connection.runInAll(every, (client, keys) => client.xlen(keys.deadLetters)),
    storeEvents(store).lags.read(),
    instanceStates(store),
  ]);
  return {
    namespace: partitions.namespace,
    holds: partitions.owner.holds,
    partitions: partitions.count,
    ...content,
    events: sum(events),
    deadLetters: sum(dead),
    groups: groups.map(({ name, lag, pending }) => ({ name, lag, pending })),
    instances: instances.alive.length,
    keys: await sampleKeys(store, size, call),
  };
}

type Stats = Awaited<ReturnType<typeof read>>;

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function* linesOf(stats: Stats): Iterable<string> {
  const { namespace, holds, partitions, sessions, deadlines, overdue, events, deadLetters, groups, instances } = stats;
  const rows: [string, string | number][] = [
    [
      'namespace',
      `${shownText(namespace)}, ${shownContent(holds)}, ${partitions === 1 ? '1 partition' : `${partitions} partitions`}`,
    ],
    ...(sessions === undefined ? [] : [['sessions', sessions] as [string, number]]),
    ['overdue', overdue === 0 ? 'nothing' : `for ${shownDuration(overdue)}`],
    ['events', events],
    ['dead letters', deadLetters],
    ['instances', instances],
  ];
  for (const [title, value] of rows) yield `${title.padEnd(14)}${value}`;
  if (deadlines && deadlines.length > 0) {
    yield '';
    const waiting = deadlines.map(({ name, count, overdue: late }) => [shownText(name), count, shownDuration(late)]);
    yield* columns(['DEADLINE', 'WAITING', 'OVERDUE'], waiting);
  }
  if (groups.length > 0) {
    yield '';
    yield* columns(
      ['GROUP', 'UNREAD', 'PENDING'],
      groups.map(({ name, lag, pending }) => [shownText(name), lag, pending]),
    );
  }
  if (stats.keys.length > 0) {
    yield '';
    yield* columns(['KEYS', 'SAMPLED', 'EACH', 'LARGEST'], stats.keys.map(rowOf));
  }
}

function rowOf({ kind, sampled, averageBytes, largestBytes }: KindOfKeys): (string | number)[] {
  return [kind, sampled, shownBytes(averageBytes), shownBytes(largestBytes)];
}
