import { shownText } from '@nest-session/core/internal';
import { shownContent } from '@nest-session/redis-events/internal';
import type { CommandCall, ExitCode } from './command.js';
import { columns, counted, shownDuration } from './shown.js';
import { type OpenStore, withStore } from './store-access.js';
import { contentOf, entriesIn, instanceStates, storeEvents } from './store-content.js';

export function run(call: CommandCall): Promise<ExitCode> {
  return withStore(call, async (store) => {
    const stats = await read(store);
    return call.output.report(stats, linesOf(stats));
  });
}

type Stats = Awaited<ReturnType<typeof read>>;

async function read(store: OpenStore) {
  const { namespace, owner, count } = store.partitions;
  const [content, events, deadLetters, groups, instances] = await Promise.all([
    contentOf(store),
    entriesIn(store, 'events'),
    entriesIn(store, 'deadLetters'),
    storeEvents(store).lags.read(),
    instanceStates(store),
  ]);
  return {
    namespace,
    holds: owner.holds,
    partitions: count,
    ...content,
    events,
    deadLetters,
    groups: groups.map(({ name, lag, pending }) => ({ name, lag, pending })),
    instances: instances.alive.length,
  };
}

function* linesOf({ namespace, holds, partitions, deadlines = [], groups, ...counts }: Stats): Iterable<string> {
  const facts = {
    namespace: `${shownText(namespace)}, ${shownContent(holds)}, ${counted(partitions, 'partition')}`,
    sessions: counts.sessions,
    overdue: counts.overdue === 0 ? 'nothing' : `for ${shownDuration(counts.overdue)}`,
    events: counts.events,
    'dead letters': counts.deadLetters,
    instances: counts.instances,
  };
  for (const [title, value] of Object.entries(facts)) if (value !== undefined) yield `${title.padEnd(14)}${value}`;
  const tables = [
    [
      ['DEADLINE', 'WAITING', 'OVERDUE'],
      deadlines.map(({ name, count, overdue }) => [shownText(name), count, shownDuration(overdue)]),
    ],
    [['GROUP', 'UNREAD', 'PENDING'], groups.map(({ name, lag, pending }) => [shownText(name), lag, pending])],
  ] as const;
  for (const [titles, rows] of tables) if (rows.length > 0) yield* ['', ...columns(titles, rows)];
}
