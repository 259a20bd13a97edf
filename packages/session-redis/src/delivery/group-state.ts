import type { Redis } from 'ioredis';
import type { SessionKeys } from '../keys/session-keys.js';
import { timeOf } from './stream-position.js';

/** The consumer that owns what waits for its next attempt: no instance (scripts/includes/delivery.lua). */
const RETRIES_CONSUMER = 'retries';

/** What Redis knows of a group of the events streams, those of all partitions together. */
export interface GroupState {
  readonly name: string;
  /** Events that its instances have been given and have not finished. */
  readonly pending: number;
  /** In each partition, the position of the last event that one of them was given. */
  readonly lastDelivered: ReadonlyMap<SessionKeys, string>;
}

/** An instance of a group. */
export interface ConsumerState {
  /** What Redis calls the instance. */
  readonly name: string;
  /** Events that it has been given and has not finished. */
  readonly pending: number;
  /** Milliseconds since it last asked for events, or worked on one. */
  readonly idle: number;
}

/**
 * Within how many milliseconds an instance that is at work asks for events, or renews its lease. Generous: taking a slow
 * instance for a dead one costs more than to wait.
 */
export function livenessOf(lease: number): number {
  return Math.max(lease, 10_000);
}

/** The groups, in the order of their names; none when there is no stream. */
export async function groupStates(client: Redis, partitions: readonly SessionKeys[]): Promise<GroupState[]> {
  const groups = new Map<string, { name: string; pending: number; lastDelivered: Map<SessionKeys, string> }>();
  const infos = await Promise.all(partitions.map(({ events }) => infoOf(() => client.xinfo('GROUPS', events))));
  infos.forEach((ofPartition, i) => {
    for (const info of ofPartition) {
      const name = String(info.get('name'));
      const group = groups.get(name) ?? { name, pending: 0, lastDelivered: new Map<SessionKeys, string>() };
      group.pending += Number(info.get('pending'));
      group.lastDelivered.set(partitions[i]!, String(info.get('last-delivered-id')));
      groups.set(name, group);
    }
  });
  return inOrder(groups);
}

/** The instances of a group, in the order of their names; none when there is no such group. */
export async function consumerStates(
  client: Redis,
  partitions: readonly SessionKeys[],
  group: string,
): Promise<ConsumerState[]> {
  const consumers = new Map<string, ConsumerState>();
  const infos = await Promise.all(
    partitions.map(({ events }) => infoOf(() => client.xinfo('CONSUMERS', events, group))),
  );
  for (const info of infos.flat()) {
    const name = String(info.get('name'));
    if (name === RETRIES_CONSUMER) continue;
    const known = consumers.get(name);
    const pending = (known?.pending ?? 0) + Number(info.get('pending'));
    consumers.set(name, { name, pending, idle: Math.min(known?.idle ?? Infinity, Number(info.get('idle'))) });
  }
  return inOrder(consumers);
}

/** When the first event was recorded that a group has not been given: epoch milliseconds; undefined when there is none. */
export async function oldestUnread(client: Redis, { lastDelivered }: GroupState): Promise<number | undefined> {
  const firsts = await Promise.all(
    [...lastDelivered].map(([{ events }, position]) => client.xrange(events, `(${position}`, '+', 'COUNT', 1)),
  );
  const times = firsts.flat().map(([position]) => timeOf(position));
  return times.length > 0 ? Math.min(...times) : undefined;
}

function inOrder<T>(named: ReadonlyMap<string, T>): T[] {
  return [...named.keys()].sort().map((name) => named.get(name)!);
}

async function infoOf(ask: () => Promise<unknown>): Promise<ReadonlyMap<unknown, unknown>[]> {
  const rows = (await ask().catch((error: unknown) => {
    const isMissing = error instanceof Error && /^(ERR no such key|NOGROUP )/.test(error.message);
    if (isMissing) return [];
    throw error;
  })) as unknown[][];
  return rows.map((row) => new Map(row.flatMap((name, i) => (i % 2 === 0 ? [[name, row[i + 1]]] : []))));
}
