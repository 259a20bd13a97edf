import type { EventGroupInfo } from '@nest-session/core/internal';
import {
  DeadLetterReader,
  EventGroups,
  EventStreamScripts,
  GroupLagReader,
  livenessOf,
  scriptsOn,
} from '@nest-session/redis-events/internal';
import { SESSION_ENTRIES, SessionPartitions } from '@nest-session/redis/internal';
import { DEADLINE_ENTRIES } from '@nest-session/deadlines/redis/internal';
import type { InstanceStates } from './instance-states.js';
import type { OpenStore } from './store-access.js';
import { toldEvent, type ToldEvent } from './told-event.js';

// Milliseconds: the default of the option `events.lease`.
const LEASE = 30_000;

/** Groups and dead letters, without the data of their events. */
class ToldGroups extends EventGroups<ToldEvent> {}

/** What looks at and changes the events of a store. */
export interface StoreEvents {
  readonly groups: EventGroups<ToldEvent>;
  readonly lags: GroupLagReader;
  readonly scripts: (client: ConstructorParameters<typeof EventStreamScripts>[0]) => EventStreamScripts;
}

/**
 * How many instances of a group are alive. `alive`: the names of all instances that are; with a long lease, one that
 * waits for events is silent for longer than a command can tell from its group.
 */
export function aliveIn({ consumers }: Pick<EventGroupInfo, 'consumers'>, alive: InstanceStates['alive']): number {
  return consumers.filter(({ name, idle }) => idle < livenessOf(LEASE) || alive.includes(name)).length;
}

export function storeEvents({ connection, partitions, shownId }: OpenStore): StoreEvents {
  const kind = partitions instanceof SessionPartitions ? SESSION_ENTRIES : DEADLINE_ENTRIES;
  const scripts = scriptsOn((client) => new EventStreamScripts(client, kind));
  const letters = new DeadLetterReader(connection, partitions);
  const toEvent = (entry: Parameters<typeof toldEvent>[0]) => toldEvent(entry, shownId);
  return {
    groups: new ToldGroups(connection, scripts, letters, partitions, { lease: LEASE }, { toEvent }),
    lags: new GroupLagReader(connection, scripts, partitions),
    scripts,
  };
}
