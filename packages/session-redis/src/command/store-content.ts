import type { DeadlinePartitions } from '../keys/deadline-keys.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import { DeadlineScripts } from '../scripts/deadlines/deadline.scripts.js';
import { scriptsOn } from '../scripts/define-scripts.js';
import { keepingRules } from '../scripts/session/keeping-rules.js';
import { SessionScripts } from '../scripts/session/session.scripts.js';
import type { OpenStore } from './store-access.js';

// Buckets per call: Redis takes 0.4 ms for them.
const BUCKETS_PER_CALL = 250;

/** What there is, and how late it is. */
interface Content {
  /** Sessions that have not ended, or whose end nobody has noticed. */
  readonly sessions?: number;
  /** How long ago the oldest end or deadline was due, in milliseconds. */
  readonly overdue: number;
  readonly deadlines?: readonly { readonly name: string; readonly count: number; readonly overdue: number }[];
}

/** What the applications keep in a namespace. */
export function contentOf(store: OpenStore): Promise<Content> {
  const { partitions } = store;
  return partitions instanceof SessionPartitions
    ? countSessions({ ...store, partitions })
    : countDeadlines({ ...store, partitions });
}

async function countSessions({ connection, partitions, options }: OpenStore<SessionPartitions>): Promise<Content> {
  const scripts = scriptsOn((client) => new SessionScripts(client, partitions, keepingRules(options, partitions)));
  const counts = await Promise.all(
    partitions.all.map(async (keys) => {
      let [sessions, overdue] = [0, 0];
      for (let first = 0; ; first += BUCKETS_PER_CALL) {
        const look = await connection.run(
          (client) => scripts(client).lookAt(keys, first, BUCKETS_PER_CALL),
          keys.prefix,
        );
        sessions += look.sessions;
        overdue = Math.max(overdue, look.overdue);
        if (look.buckets < BUCKETS_PER_CALL) return { sessions, overdue };
      }
    }),
  );
  return {
    sessions: sum(counts.map(({ sessions }) => sessions)),
    overdue: Math.max(...counts.map((each) => each.overdue)),
  };
}

async function countDeadlines({ connection, partitions }: OpenStore<DeadlinePartitions>): Promise<Content> {
  const scripts = scriptsOn((client) => new DeadlineScripts(client));
  const found = await connection.runInAll(partitions, (client, keys) => scripts(client).lookAt(keys));
  const names = new Map<string, { name: string; count: number; overdue: number }>();
  for (const { name, count, overdue } of found.flat()) {
    const known = names.get(name) ?? { name, count: 0, overdue: 0 };
    names.set(name, { name, count: known.count + count, overdue: Math.max(known.overdue, overdue) });
  }
  const deadlines = [...names.keys()].toSorted().map((name) => names.get(name)!);
  return { overdue: Math.max(0, ...deadlines.map((each) => each.overdue)), deadlines };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
