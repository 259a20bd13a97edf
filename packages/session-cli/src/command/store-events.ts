import { type EventGroupInfo, shownText } from '@nest-session/core/internal';
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

/** What a command tells of an event: what it was about, and no data. */
export interface ToldEvent {
  readonly type: string;
  /** When it was recorded: epoch milliseconds. */
  readonly at: number;
  /** The session, by the id that logs show. */
  readonly session: string | undefined;
  /** The id that the session had before. */
  readonly previous: string | undefined;
  /** The name of a deadline. */
  readonly name: string | undefined;
  /** The id of a deadline, which the application did not choose. */
  readonly id: string | undefined;
}

/** Groups and dead letters, without the data of their events. */
class ToldGroups extends EventGroups<ToldEvent> {}

/** What looks at and changes the events of a store. */
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

/** A group, and what one look at all of them knows. */
export interface ToldGroup extends Omit<EventGroupInfo, 'oldestUnread' | 'consumers'> {
  /** Milliseconds; 0: it has read all. */
  readonly oldestUnreadAge: number;
  readonly deadLetters: number;
  /** How many of its instances are alive. */
  readonly instances: number;
}

/** All groups of a store. */
export async function groupsOf(store: OpenStore): Promise<ToldGroup[]> {
  const { groups, lags } = storeEvents(store);
  const [infos, readings, { alive }] = await Promise.all([groups.list(), lags.read(), instanceStates(store)]);
  return infos.map(({ oldestUnread, consumers, ...numbers }) => {
    const reading = readings.find(({ name }) => name === numbers.name);
    // With a long lease, one that waits for events is silent for longer than a command can tell from its group.
    const isAlive = ({ name, idle }: (typeof consumers)[number]) => idle < livenessOf(LEASE) || alive.includes(name);
    return {
      ...numbers,
      oldestUnreadAge: oldestUnread === undefined ? 0 : (reading?.oldestUnreadAge ?? 0),
      deadLetters: reading?.deadLetters ?? 0,
      instances: consumers.filter(isAlive).length,
    };
  });
}

/** `shown`: a session id as logs show it. Undefined for an entry that is no event. */
export function toldEvent(entry: StreamEntry, shown: (id: string) => string): ToldEvent | undefined {
  const field = (name: string) => fieldOf(entry, name);
  const shownField = (name: string) => (field(name) === undefined ? undefined : shown(field(name)!));
  const type = field('type');
  return type === undefined
    ? undefined
    : {
        type,
        at: Number(field('at')),
        session: shownField('session'),
        previous: shownField('previous'),
        name: field('name'),
        id: field('id'),
      };
}

/** As a part of a line. */
export function shownEvent(event: ToldEvent | undefined): string {
  if (!event) return '-';
  const { type, session, previous, name, id } = event;
  const parts = [type, name, session ?? id].filter((part) => part !== undefined).map(shownText);
  return parts.join(' ') + (previous === undefined ? '' : ` (before ${shownText(previous)})`);
}
