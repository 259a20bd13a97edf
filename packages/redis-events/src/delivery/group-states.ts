import type { ConsumerState, GroupReading } from '@nest-session/core/internal';
import type { Redis } from 'ioredis';
import { Inject, Injectable } from '@nestjs/common';
import { type PartitionKeys, Partitions } from '../partitions/partitions.js';
import { timeOf } from '../scripts/stream/stream-entry.js';
import { RequestConnection } from '../connection/request.connection.js';
import type { ScriptsOn } from '../scripts/define-scripts.js';
import type { EventStreamScripts } from '../scripts/event-stream.scripts.js';
import { REQUEST_STREAM_SCRIPTS } from '../configuration/event-rules.js';

/** This consumer owns the entries that wait for a retry; it is no instance. See scripts/library/groups.lua. */
export const RETRIES_CONSUMER = 'retries';

export type AskPartition = <T>(partition: PartitionKeys, command: (client: Redis) => Promise<T>) => Promise<T>;

export interface GroupState {
  readonly name: string;
  readonly pending: number;
  /** In each partition, the position of the last event that was delivered. */
  readonly lastDelivered: ReadonlyMap<PartitionKeys, string>;
}

// Milliseconds by which an instance may be late to show itself.
const LATENESS = 5000;

/** The idle time in ms below which an instance is alive: to take a slow one for dead costs more than to wait. */
export function livenessOf(lease: number): number {
  return Math.max(lease + LATENESS, 10_000);
}

export async function groupStates(ask: AskPartition, partitions: readonly PartitionKeys[]): Promise<GroupState[]> {
  const groups = new Map<string, { name: string; pending: number; lastDelivered: Map<PartitionKeys, string> }>();
  const infos = await Promise.all(
    partitions.map((keys) => ask(keys, (client) => infoOf(client.xinfo('GROUPS', keys.events)))),
  );
  infos.forEach((ofPartition, i) => {
    for (const info of ofPartition) {
      const name = String(info.get('name'));
      const group = groups.get(name) ?? { name, pending: 0, lastDelivered: new Map<PartitionKeys, string>() };
      group.pending += Number(info.get('pending'));
      group.lastDelivered.set(partitions[i]!, String(info.get('last-delivered-id')));
      groups.set(name, group);
    }
  });
  return inOrder(groups);
}

export async function consumerStates(
  ask: AskPartition,
  partitions: readonly PartitionKeys[],
  group: string,
): Promise<ConsumerState[]> {
  const consumers = new Map<string, ConsumerState>();
  const infos = await Promise.all(
    partitions.map((keys) => ask(keys, (client) => infoOf(client.xinfo('CONSUMERS', keys.events, group)))),
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

/** When the oldest event that a group has not read was recorded: epoch ms; undefined when it has read all. */
export async function oldestUnread(ask: AskPartition, { lastDelivered }: GroupState): Promise<number | undefined> {
  const firsts = await Promise.all(
    [...lastDelivered].map(([keys, position]) =>
      ask(keys, (client) => client.xrange(keys.events, `(${position}`, '+', 'COUNT', 1)),
    ),
  );
  const times = firsts.flat().map(([position]) => timeOf(position));
  return times.length > 0 ? Math.min(...times) : undefined;
}

function inOrder<T>(named: ReadonlyMap<string, T>): T[] {
  return [...named.keys()].sort().map((name) => named.get(name)!);
}

async function infoOf(asked: Promise<unknown>): Promise<ReadonlyMap<unknown, unknown>[]> {
  const rows = (await asked.catch((error: unknown) => {
    const isMissing = error instanceof Error && /^(ERR no such key|NOGROUP )/.test(error.message);
    if (isMissing) return [];
    throw error;
  })) as unknown[][];
  return rows.map((row) => new Map(row.flatMap((name, i) => (i % 2 === 0 ? [[name, row[i + 1]]] : []))));
}

/** Unread events of a group that are counted in each partition: 1,000 would block Redis for 4 ms. */
const MOST_COUNTED = 100;

@Injectable()
export class GroupLagReader {
  constructor(
    @Inject(RequestConnection) private readonly connection: RequestConnection,
    @Inject(REQUEST_STREAM_SCRIPTS) private readonly scripts: ScriptsOn<EventStreamScripts>,
    @Inject(Partitions) private readonly partitions: Partitions,
  ) {}

  async read(): Promise<GroupReading[]> {
    const replies = await this.connection.runInAll(this.partitions, (client, keys) =>
      this.scripts(client).lookAtGroups(keys, MOST_COUNTED),
    );
    const groups = new Map<string, number[]>();
    for (const [name, ...numbers] of replies.flat()) {
      const known = groups.get(name) ?? [];
      const together = (number: number, i: number) =>
        i === AGE ? Math.max(number, known[i] ?? 0) : number + (known[i] ?? 0);
      groups.set(name, numbers.map(together));
    }
    return [...groups.keys()].toSorted().map((name) => toReading(name, groups.get(name)!));
  }
}

/** The place of `oldestUnreadAge` in the reply of look-at-groups. */
const AGE = 1;

function toReading(name: string, numbers: readonly number[]): GroupReading {
  const [lag = 0, oldestUnreadAge = 0, pending = 0, retrying = 0, deadLetters = 0, dropped = 0, lost = 0] = numbers;
  return { name, lag, oldestUnreadAge, pending, retrying, deadLetters, dropped, lostDeadLetters: lost };
}
