import { shownText } from '@nest-session/core/internal';
import { type PartitionKeys, partitionsByNode, patternOf, shownContent } from '@nest-session/redis-events/internal';
import { SessionPartitions } from '@nest-session/redis/internal';
import type { Redis } from 'ioredis';
import type { CommandCall, ExitCode } from './command.js';
import { columns, counted, shownBytes, shownDuration } from './shown.js';
import { type OpenStore, withStore } from './store-access.js';
import { contentOf, entriesIn, instanceStates, storeEvents } from './store-content.js';
import { wholeNumber } from './usage.error.js';

export function run(call: CommandCall): Promise<ExitCode> {
  const size = wholeNumber('sample', call.values['sample'] ?? '1000', { atMost: 100_000 });
  return withStore(call, async (store) => {
    const stats = await read(call, store, size);
    return call.output.report(stats, linesOf(stats));
  });
}

type Stats = Awaited<ReturnType<typeof read>>;

async function read(call: CommandCall, store: OpenStore, size: number) {
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
    keys: await sampleKeys(call, store, size),
  };
}

function* linesOf({ namespace, holds, partitions, deadlines = [], groups, keys, ...counts }: Stats): Iterable<string> {
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
    [
      ['KEYS', 'SAMPLED', 'EACH', 'LARGEST'],
      keys.map((each) => [each.kind, each.sampled, shownBytes(each.averageBytes), shownBytes(each.largestBytes)]),
    ],
  ] as const;
  for (const [titles, rows] of tables) if (rows.length > 0) yield* ['', ...columns(titles, rows)];
}

// Keys that SCAN looks at per call, and calls per node: other applications may have many keys in this Redis.
const SCANNED_AT_ONCE = 500;
const MOST_CALLS = 400;

type Kind = readonly [kind: string, name: RegExp];

const KINDS_OF_SESSIONS: readonly Kind[] = [
  ['shadow keys', /^sessions:expires:/],
  ['forwarding marks', /^sessions:(forwarded|taken-over):/],
  ['session hashes', /^sessions:/],
  ['ends', /^(expirations|ends)/],
  ['indexes', /^(index|stray|ledger|revoked|marks):/],
];
const KINDS_OF_DEADLINES: readonly Kind[] = [
  ['deadlines', /^deadlines:/],
  ['due lists', /^due/],
];
const COMMON: readonly Kind[] = [['events and groups', /^events/]];

/** Measures some keys of a namespace by their kind, the first ones that SCAN finds on each node. */
async function sampleKeys({ signal, output }: CommandCall, store: OpenStore, size: number) {
  const { connections, connection, partitions } = store;
  const all: readonly PartitionKeys[] = size === 0 ? [] : partitions.all;
  // Commands without keys reach a node by a partition that it has.
  const nodes = [...partitionsByNode(connections.background, all).values()].map(([keys]) => keys!.prefix);
  const scan = ['MATCH', `${patternOf(partitions.namespace)}:*`, 'COUNT', SCANNED_AT_ONCE] as const;
  const kinds = new Map<string, { sampled: number; bytes: number; largestBytes: number }>();
  let measured = 0;
  for (const [i, node] of nodes.entries()) {
    const most = Math.ceil((size * (i + 1)) / nodes.length);
    let cursor = '0';
    for (let calls = 0; calls < MOST_CALLS && measured < most && !signal.aborted; calls++) {
      const [next, found] = await connection.run((client) => client.scan(cursor, ...scan), node);
      const some = found.slice(0, most - measured);
      for (const [kind, bytes] of await measure(store, node, some)) {
        const known = kinds.get(kind) ?? { sampled: 0, bytes: 0, largestBytes: 0 };
        const largestBytes = Math.max(known.largestBytes, bytes);
        kinds.set(kind, { sampled: known.sampled + 1, bytes: known.bytes + bytes, largestBytes });
      }
      measured += some.length;
      output.progress(`${measured} keys measured`);
      cursor = next;
      if (cursor === '0') break;
    }
  }
  return [...kinds].map(([kind, { sampled, bytes, largestBytes }]) => {
    return { kind, sampled, averageBytes: Math.round(bytes / sampled), largestBytes };
  });
}

/** A key that is gone by then is left out. */
async function measure(store: OpenStore, node: string, keys: readonly string[]): Promise<[string, number][]> {
  const usages = (client: Redis) => Promise.all(keys.map((key) => client.memory('USAGE', key).catch(ifMoved)));
  const sizes = await store.connection.run(usages, node);
  return keys.flatMap((key, i) => (sizes[i] == null ? [] : [[kindOf(store, key), sizes[i]]]));
}

/** A node of a Cluster may have given a slot away. */
function ifMoved(error: unknown): null {
  if (/^(MOVED|ASK) /.test((error as Error).message)) return null;
  throw error;
}

function kindOf({ partitions }: OpenStore, key: string): string {
  const name = key.slice(partitions.namespace.length + 1).replace(/^\{[^}]*\}:/, '');
  const own = partitions instanceof SessionPartitions ? KINDS_OF_SESSIONS : KINDS_OF_DEADLINES;
  return [...own, ...COMMON].find(([, pattern]) => pattern.test(name))?.[0] ?? 'others';
}
