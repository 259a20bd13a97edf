import { scriptsOn } from '@nest-session/redis-events/internal';
import { countSessions, keepingRules, SessionPartitions, SessionScripts } from '@nest-session/redis/internal';
import { type DeadlinePartitions, DeadlineScripts, waitingDeadlines } from '@nest-session/deadlines/redis/internal';
import type { OpenStore } from './store-access.js';

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
    ? contentOfSessions({ ...store, partitions })
    : contentOfDeadlines({ ...store, partitions });
}

async function contentOfSessions({ connection, partitions, options }: OpenStore<SessionPartitions>): Promise<Content> {
  const scripts = scriptsOn((client) => new SessionScripts(client, partitions, keepingRules(options, partitions)));
  return countSessions(connection, scripts, partitions);
}

async function contentOfDeadlines({ connection, partitions }: OpenStore<DeadlinePartitions>): Promise<Content> {
  const scripts = scriptsOn((client) => new DeadlineScripts(client));
  const deadlines = await waitingDeadlines(connection, scripts, partitions);
  return { overdue: Math.max(0, ...deadlines.map(({ overdue }) => overdue)), deadlines };
}
