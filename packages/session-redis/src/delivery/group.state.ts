import type { Redis } from 'ioredis';
import { timeOf } from './stream.position.js';

/** The consumer that owns what waits for its next attempt: no instance (scripts/includes/delivery.lua). */
const RETRIES_CONSUMER = 'retries';

/** What Redis knows of a group of the events stream. */
export interface GroupState {
  readonly name: string;
  /** Events that its instances have been given and have not finished. */
  readonly pending: number;
  /** The position of the last event that one of them was given. */
  readonly lastDelivered: string;
}

/** An instance of a group. */
export interface ConsumerState {
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

/** The groups of a stream, in the order of their names; none when there is no stream. */
export async function groupStates(client: Redis, stream: string): Promise<GroupState[]> {
  return (await infoOf(() => client.xinfo('GROUPS', stream))).map((group) => ({
    name: String(group.get('name')),
    pending: Number(group.get('pending')),
    lastDelivered: String(group.get('last-delivered-id')),
  }));
}

/** The instances of a group; none when there is no such group. */
export async function consumerStates(client: Redis, stream: string, group: string): Promise<ConsumerState[]> {
  const consumers = (await infoOf(() => client.xinfo('CONSUMERS', stream, group))).map((consumer) => ({
    name: String(consumer.get('name')),
    pending: Number(consumer.get('pending')),
    idle: Number(consumer.get('idle')),
  }));
  return consumers.filter(({ name }) => name !== RETRIES_CONSUMER);
}

/** When the first event behind a position was recorded: epoch milliseconds; undefined when there is none. */
export async function firstEventAfter(client: Redis, stream: string, position: string): Promise<number | undefined> {
  const [entry] = await client.xrange(stream, `(${position}`, '+', 'COUNT', 1);
  return entry && timeOf(entry[0]);
}

async function infoOf(ask: () => Promise<unknown>): Promise<ReadonlyMap<unknown, unknown>[]> {
  const rows = (await ask().catch((error: unknown) => {
    const isMissing = error instanceof Error && /^(ERR no such key|NOGROUP )/.test(error.message);
    if (isMissing) return [];
    throw error;
  })) as unknown[][];
  return rows.map((row) => new Map(row.flatMap((name, i) => (i % 2 === 0 ? [[name, row[i + 1]]] : []))));
}
