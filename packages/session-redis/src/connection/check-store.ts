import { InvalidSessionOptionsError } from '@nest-session/core';
import type { Redis } from 'ioredis';
import type { NamespaceOwner, Partitions } from '../partitions/partitions.js';
import { FORMAT, FORMAT_FIELDS, formatProblem, raised } from './store-format.js';

/** Where commands are run. */
export interface Connection {
  /** Runs a command on a client of the node that has a key, or on one of the whole Cluster. */
  run<T>(command: (client: Redis) => Promise<T>, key: string): Promise<T>;
}

/**
 * Checks on the first connection that this version can use the data in Redis. The first instance records the format and
 * the number of partitions there; the first one that writes a newer format raises it. `own`: what this version knows.
 * @throws InvalidSessionOptionsError when they differ, and whatever the connection throws
 */
export async function checkStore(connection: Connection, partitions: Partitions, own = FORMAT): Promise<void> {
  const { meta, count, owner } = partitions;
  const recorded = () => connection.run((client) => client.hmget(meta, 'partitions', 'holds', ...FORMAT_FIELDS), meta);
  // Written only when missing, so that an instance also starts on a Redis that is out of memory.
  const [partitionsBefore, holdsBefore, versionBefore] = await recorded();
  const { version, minReader, minWriter } = own;
  const first = {
    ...(versionBefore == null && { minReader, minWriter }),
    version,
    partitions: count,
    holds: owner.holds,
  };
  if (partitionsBefore == null || holdsBefore == null || versionBefore == null) {
    for (const [field, value] of Object.entries(first))
      await connection.run((client) => client.hsetnx(meta, field, value), meta);
  }
  const [record, holds, ...format] = await recorded();
  refuseFor(partitions, formatProblem(format, own, { writes: true }));
  if (holds !== owner.holds) refuse(partitions, holdsProblem(String(holds), owner));
  if (record !== `${count}`) refuse(partitions, partitionsProblem(String(record), partitions));
  const toRecord = raised(format, own);
  if (Object.values(toRecord).some((number, i) => `${number}` !== format[i]))
    await connection.run((client) => client.hset(meta, toRecord), meta);
  await recordFacts(connection, partitions);
}

/** Written only when they differ, as above. */
async function recordFacts(connection: Connection, { meta, owner }: Partitions): Promise<void> {
  const facts = Object.entries(owner.facts ?? {});
  if (facts.length === 0) return;
  const known = await connection.run((client) => client.hmget(meta, ...facts.map(([name]) => name)), meta);
  if (facts.every(([, fact], i) => fact === known[i])) return;
  await connection.run((client) => client.hset(meta, Object.fromEntries(facts)), meta);
}

/**
 * The partitions that an application has recorded, for a command that moves sessions: it records nothing itself.
 * @throws InvalidSessionOptionsError when no application has started in the namespace, or one of another format
 */
export async function recordedPartitions(client: Redis, partitions: Partitions): Promise<string> {
  return recordIn(await client.hmget(partitions.meta, ...RECORD), partitions, { writes: true });
}

/**
 * The same number, for a command that looks at what they hold or, with `writes`, changes it.
 * @throws InvalidSessionOptionsError also while they are being moved to others
 */
export async function settledPartitions(
  connection: Connection,
  partitions: Partitions,
  { writes }: { readonly writes: boolean },
): Promise<number> {
  const { meta } = partitions;
  const record = recordIn(await connection.run((client) => client.hmget(meta, ...RECORD), meta), partitions, {
    writes,
  });
  if (record.includes('>')) refuse(partitions, partitionsProblem(record, partitions));
  return Number(record);
}

const RECORD = ['partitions', 'holds', ...FORMAT_FIELDS] as const;

function recordIn(
  [recorded, holds, ...format]: (string | null)[],
  partitions: Partitions,
  access: { readonly writes: boolean },
): string {
  const { namespace, owner } = partitions;
  if (recorded == null) {
    throw new InvalidSessionOptionsError('RedisSessionModule', [
      `No application has started in namespace ${JSON.stringify(namespace)} yet.`,
    ]);
  }
  refuseFor(partitions, formatProblem(format, FORMAT, access));
  if (holds != null && holds !== owner.holds) refuse(partitions, holdsProblem(holds, owner));
  return recorded;
}

/** A number of partitions, for a sentence. */
export function shownCount(partitions: string): string {
  return partitions === '1' ? '1 partition' : `${partitions} partitions`;
}

/** @throws InvalidSessionOptionsError */
export function refuse({ namespace, owner }: Pick<Partitions, 'namespace' | 'owner'>, problem: string): never {
  throw new InvalidSessionOptionsError(owner.module, [
    `The ${owner.holds} in namespace ${JSON.stringify(namespace)} ${problem}`,
  ]);
}

function holdsProblem(recorded: string, { holds }: NamespaceOwner): string {
  return `cannot be kept there, because it holds ${recorded}: use another namespace for ${holds}.`;
}

function refuseFor(partitions: Partitions, problem: string | undefined): void {
  if (problem !== undefined) refuse(partitions, problem);
}

const MORE = 'See the page "Repartitioning" of the documentation.';

/** Why this instance cannot use the recorded partitions, and what to do. */
function partitionsProblem(record: string, { count, owner }: Pick<Partitions, 'count' | 'owner'>): string {
  const [from, to] = record.split('>');
  const command = `nest-session-redis repartition --from ${from} --to`;
  if (to !== undefined) {
    return (
      `are being moved from ${from} to ${to} partitions. Run \`${command} ${to}\` until it has finished, and set option ` +
      `\`partitions\` to ${to}. ${MORE}`
    );
  }
  const differs = `are in ${shownCount(record)}, but option \`partitions\` is ${count}. Set it to ${record}, or use another namespace.`;
  if (owner.holds !== 'sessions') return differs;
  return `${differs} To move them, stop all instances and run \`${command} ${count}\`. ${MORE}`;
}
