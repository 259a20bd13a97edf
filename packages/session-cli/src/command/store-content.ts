import { DEADLINE_ENTRIES, DeadlineScripts, waitingDeadlines } from '@nest-session/deadlines/redis/internal';
import {
  ALIVE,
  EventGroups,
  EventStreamScripts,
  fieldOf,
  GroupLagReader,
  livenessOf,
  nodeWith,
  type PartitionKeys,
  scriptsOn,
  type StreamEntry,
} from '@nest-session/redis-events/internal';
import { countSessions, SESSION_ENTRIES, SessionPartitions } from '@nest-session/redis/internal';
import { shownText } from '@nest-session/core/internal';
import { type OpenStore, sessionScriptsOf } from './store-access.js';

interface Content {
  /** Sessions that have not ended, or whose end nobody has noticed. */
  readonly sessions?: number;
  /** How long ago the oldest end or deadline was due, in milliseconds. */
  readonly overdue: number;
  readonly deadlines?: readonly { readonly name: string; readonly count: number; readonly overdue: number }[];
}

export async function contentOf({ connection, partitions, options }: OpenStore): Promise<Content> {
  if (partitions instanceof SessionPartitions)
    return countSessions(connection, sessionScriptsOf({ partitions, options }), partitions);
  const scripts = scriptsOn((client) => new DeadlineScripts(client));
  const deadlines = await waitingDeadlines(connection, scripts, partitions);
  return { overdue: Math.max(0, ...deadlines.map(({ overdue }) => overdue)), deadlines };
}

export async function entriesIn(
  { connection, partitions }: OpenStore,
  stream: 'events' | 'deadLetters',
): Promise<number> {
  const all: readonly PartitionKeys[] = partitions.all;
  const counts = await connection.runInAll({ all }, (client, keys) => client.xlen(keys[stream]));
  return counts.reduce((sum, count) => sum + count, 0);
}

/** The names of instances: host, process and a UUID. `silent`: they were killed within a day, or do not reach Redis. */
export async function instanceStates({ connection, partitions: { instances } }: OpenStore) {
  const [time, rows] = await connection.run(
    (client) => Promise.all([nodeWith(client, instances).time(), client.zrange(instances, '0', '-1', 'WITHSCORES')]),
    instances,
  );
  const since = Number(time[0]) * 1000 - ALIVE;
  const names = rows.filter((_, i) => i % 2 === 0);
  const isAlive = (name: string) => Number(rows[2 * names.indexOf(name) + 1]) >= since;
  return { alive: names.filter(isAlive), silent: names.filter((name) => !isAlive(name)) };
}

// Milliseconds: the default of the option `events.lease`.
const LEASE = 30_000;

/** Groups and dead letters, without the data of their events. */
class ToldGroups extends EventGroups<ToldEvent> {}

export function storeEvents({ connection, partitions, shownId }: OpenStore) {
  const kind = partitions instanceof SessionPartitions ? SESSION_ENTRIES : DEADLINE_ENTRIES;
  const scripts = scriptsOn((client) => new EventStreamScripts(client, kind));
  const toEvent = (entry: StreamEntry) => toldEvent(entry, shownId);
  return {
    groups: new ToldGroups(connection, scripts, partitions, { lease: LEASE }, { toEvent }),
    lags: new GroupLagReader(connection, scripts, partitions),
    scripts,
  };
}

export type ToldGroup = Awaited<ReturnType<typeof groupsOf>>[number];

export async function groupsOf(store: OpenStore) {
  const { groups, lags } = storeEvents(store);
  const [infos, readings, { alive }] = await Promise.all([groups.list(), lags.read(), instanceStates(store)]);
  return infos.map(({ oldestUnread, consumers, ...numbers }) => {
    const reading = readings.find(({ name }) => name === numbers.name);
    // With a long lease, one that waits for events is silent for longer than a command can tell from its group.
    const isAlive = ({ name, idle }: (typeof consumers)[number]) => idle < livenessOf(LEASE) || alive.includes(name);
    return {
      ...numbers,
      /** Milliseconds; 0: it has read all. */
      oldestUnreadAge: oldestUnread === undefined ? 0 : (reading?.oldestUnreadAge ?? 0),
      deadLetters: reading?.deadLetters ?? 0,
      instances: consumers.filter(isAlive).length,
    };
  });
}

export type ToldEvent = NonNullable<ReturnType<typeof toldEvent>>;

/** Without its data. Undefined for an entry that is no event. */
export function toldEvent(entry: StreamEntry, shown: (id: string) => string) {
  const field = (name: string) => fieldOf(entry, name);
  const [type, session, previous] = ['type', 'session', 'previous'].map(field);
  if (type === undefined) return undefined;
  return {
    type,
    at: Number(field('at')),
    session: session === undefined ? undefined : shown(session),
    previous: previous === undefined ? undefined : shown(previous),
    name: field('name'),
    /** The id of a deadline, which the application did not choose. */
    id: field('id'),
  };
}

export function shownEvent(event: ToldEvent | undefined): string {
  if (!event) return '-';
  const { type, session, previous, name, id } = event;
  const parts = [type, name, session ?? id].filter((part) => part !== undefined).map(shownText);
  return parts.join(' ') + (previous === undefined ? '' : ` (before ${shownText(previous)})`);
}
