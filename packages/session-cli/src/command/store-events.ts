import { shownText } from '@nest-session/core/internal';
import { DEADLINE_ENTRIES } from '@nest-session/deadlines/redis/internal';
import {
  DeadLetterReader,
  EventGroups,
  EventStreamScripts,
  fieldOf,
  GroupLagReader,
  livenessOf,
  scriptsOn,
  type StreamEntry,
} from '@nest-session/redis-events/internal';
import { SESSION_ENTRIES, SessionPartitions } from '@nest-session/redis/internal';
import type { OpenStore } from './store-access.js';
import { instanceStates } from './store-content.js';

// Milliseconds: the default of the option `events.lease`.
const LEASE = 30_000;

/** Groups and dead letters, without the data of their events. */
class ToldGroups extends EventGroups<ToldEvent> {}

export function storeEvents({ connection, partitions, shownId }: OpenStore) {
  const kind = partitions instanceof SessionPartitions ? SESSION_ENTRIES : DEADLINE_ENTRIES;
  const scripts = scriptsOn((client) => new EventStreamScripts(client, kind));
  const letters = new DeadLetterReader(connection, partitions);
  const toEvent = (entry: StreamEntry) => toldEvent(entry, shownId);
  return {
    groups: new ToldGroups(connection, scripts, letters, partitions, { lease: LEASE }, { toEvent }),
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
    /** When it was recorded: epoch milliseconds. */
    at: Number(field('at')),
    session: session === undefined ? undefined : shown(session),
    /** The id that the session had before. */
    previous: previous === undefined ? undefined : shown(previous),
    /** The name of a deadline. */
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
