import { InvalidSessionOptionsError } from '@nest-session/core';
import { shownText } from '@nest-session/core/internal';
import type { Redis } from 'ioredis';
import { shownCommand } from '../logging/advice.js';
import { type NamespaceOwner, shownContent } from '../partitions/namespace.js';
import type { Partitions } from '../partitions/partitions.js';
import { namespaceScripts } from '../scripts/namespace/namespace.scripts.js';
import { infoOf, serverIn, tooOldProblem } from '../connection/shown-server.js';
import { redisTime } from '../connection/node-with.js';
import { isAnswer } from '../connection/server-faults.js';

export interface StoreFormat {
  readonly version: number;
  /** The oldest format that it understands. */
  readonly oldest: number;
  /** The format that others have to know to read what it writes. */
  readonly minReader: number;
  /** The format that others have to know to write beside it. */
  readonly minWriter: number;
}

/** What this version knows. A change that old instances can ignore raises `version` alone. */
export const FORMAT: StoreFormat = { version: 3, oldest: 3, minReader: 3, minWriter: 3 };

/** Since when instances have the option `maxSessions`, in epoch milliseconds. */
export const LIMITED_SINCE = 'limitedSince';

const FORMAT_FIELDS = ['version', 'minReader', 'minWriter'] as const;
const FIELDS = [...FORMAT_FIELDS, 'partitions', 'holds', 'ids', LIMITED_SINCE] as const;

type Recorded = Readonly<Record<(typeof FIELDS)[number], string | null>>;

interface Access {
  readonly writes: boolean;
}

function formatProblem(recorded: Recorded, own: StoreFormat, { writes }: Access): string | undefined {
  const { version } = recorded;
  const needed = recorded[writes ? 'minWriter' : 'minReader'] ?? version;
  if (!(Number(version) >= own.oldest)) {
    return (
      `have format ${String(version)}, but this version of the library understands format ${own.oldest} and later. Use ` +
      'another namespace, or the version that wrote them.'
    );
  }
  if (Number(needed) <= own.version) return undefined;
  return (
    `have format ${String(version)}, and only versions of the library that know format ${String(needed)} may ` +
    `${writes ? 'write' : 'read'} it: this one knows format ${own.version}. Use a newer version, or another namespace.`
  );
}

export interface Connection {
  /** The client is of the node that has the key, or of the whole Cluster. */
  run<T>(command: (client: Redis) => Promise<T>, key: string): Promise<T>;
}

/** One that does not say its version is tried. @throws InvalidSessionOptionsError when it is too old for the scripts */
export async function checkServer(connection: Connection, { meta, owner }: Partitions): Promise<void> {
  const ask = (client: Redis) =>
    client.info('server').catch((error: unknown) => {
      if (isAnswer(error)) return '';
      throw error;
    });
  const [name, version] = serverIn(infoOf(await connection.run(ask, meta)));
  const problem = tooOldProblem([name, version]);
  if (problem === undefined) return;
  throw new InvalidSessionOptionsError(owner.module, [`${problem}, this is ${shownText(version!)}. Upgrade ${name}.`]);
}

/**
 * Checks that this version, which knows `own`, can use the data. The first instance records the format, the number of
 * partitions and the form of ids; the first one of a newer format raises it. @throws InvalidSessionOptionsError
 */
export async function checkStore(connection: Connection, partitions: Partitions, own = FORMAT): Promise<void> {
  const { meta, count, owner } = partitions;
  let known = await recorded(connection, partitions);
  const { version, minReader, minWriter } = own;
  const format = known.version === null && { minReader, minWriter, version };
  const first = Object.entries({ ...format, partitions: count, holds: owner.holds });
  // Written only when missing, so that an instance also starts on a Redis that is out of memory.
  const missing = first.filter(([field]) => known[field as keyof Recorded] === null);
  for (const [field, value] of missing) await connection.run((client) => client.hsetnx(meta, field, value), meta);
  if (missing.length > 0) known = await recorded(connection, partitions);
  refuseFor(partitions, formatProblem(known, own, { writes: true }));
  if (known.holds !== owner.holds) refuse(partitions, holdsProblem(String(known.holds), owner));
  if (known.partitions !== `${count}`) refuse(partitions, partitionsProblem(String(known.partitions), partitions));
  if (FORMAT_FIELDS.some((field) => Number(known[field]) < own[field])) {
    const toRaise = FORMAT_FIELDS.flatMap((field) => [field, own[field]]);
    await connection.run((client) => namespaceScripts(client)('raise-format', [meta], toRaise), meta);
  }
  if (owner.ids !== undefined) await checkIds(connection, partitions, owner.ids, known.ids);
  // With one partition there are no ledgers.
  if (owner.limits !== undefined && count > 1) await recordLimits(connection, partitions, known.limitedSince);
}

/** Ids that were tokens may stay so while old sessions live. Others must not become tokens: they stand in logs. */
async function checkIds(
  connection: Connection,
  partitions: Partitions,
  own: 'hashed' | 'plain',
  known: string | null,
): Promise<void> {
  const { meta } = partitions;
  if (known === own) return;
  if (known === null) {
    // Another instance may be the first one.
    await connection.run((client) => client.hsetnx(meta, 'ids', own), meta);
    return checkIds(connection, partitions, own, (await recorded(connection, partitions)).ids ?? own);
  }
  if (own === 'plain') refuse(partitions, HASHED_IDS);
  if (known === 'plain') await connection.run((client) => client.hset(meta, 'ids', BOTH_FORMS), meta);
}

/** Records since when every instance that starts has the option `maxSessions`: earlier ledgers may lack sessions. */
async function recordLimits(connection: Connection, { meta, owner }: Partitions, known: string | null): Promise<void> {
  if (!owner.limits) {
    if (known !== null) await connection.run((client) => client.hdel(meta, LIMITED_SINCE), meta);
  } else if (known === null) {
    const now = await connection.run(redisTime, meta);
    await connection.run((client) => client.hsetnx(meta, LIMITED_SINCE, now), meta);
  }
}

async function recorded(connection: Connection, { meta }: Partitions): Promise<Recorded> {
  const texts = await connection.run((client) => client.hmget(meta, ...FIELDS), meta);
  return Object.fromEntries(FIELDS.map((field, i) => [field, texts[i] ?? null])) as Recorded;
}

/** For a command that moves sessions. @throws InvalidSessionOptionsError for an unused namespace, or another format */
export function recordedPartitions(client: Redis, partitions: Partitions): Promise<string> {
  return recordedIn({ run: (command) => command(client) }, partitions, { writes: true });
}

/** @throws InvalidSessionOptionsError also while the partitions are being moved to others */
export async function settledPartitions(
  connection: Connection,
  partitions: Partitions,
  access: Access,
): Promise<number> {
  const record = await recordedIn(connection, partitions, access);
  if (record.includes('>')) refuse(partitions, partitionsProblem(record, partitions));
  return Number(record);
}

async function recordedIn(connection: Connection, partitions: Partitions, access: Access): Promise<string> {
  const known = await recorded(connection, partitions);
  if (known.partitions === null) {
    throw new InvalidSessionOptionsError('RedisSessionModule', [
      `No application has started in namespace ${JSON.stringify(partitions.namespace)} yet.`,
    ]);
  }
  const { holds } = known;
  refuseFor(partitions, formatProblem(known, FORMAT, access));
  if (holds !== null && holds !== partitions.owner.holds) refuse(partitions, holdsProblem(holds, partitions.owner));
  return known.partitions;
}

export function shownCount(partitions: string): string {
  return partitions === '1' ? '1 partition' : `${partitions} partitions`;
}

export function refuse({ namespace, owner }: Pick<Partitions, 'namespace' | 'owner'>, problem: string): never {
  throw new InvalidSessionOptionsError(owner.module, [
    `The ${shownContent(owner.holds)} in namespace ${JSON.stringify(namespace)} ${problem}`,
  ]);
}

const BOTH_FORMS = 'both';

const HASHED_IDS =
  "have ids that are no secrets, because option `sessionIds` is or was 'hashed': with 'plain', whoever has read one of " +
  "them in a log could open its session. Set it to 'hashed', or use another namespace.";

function holdsProblem(recorded: string, { holds }: NamespaceOwner): string {
  const [kept, own] = [recorded, holds].map(shownContent);
  return `cannot be kept there, because it holds ${kept}: use another namespace for ${own}.`;
}

function refuseFor(partitions: Partitions, problem: string | undefined): void {
  if (problem !== undefined) refuse(partitions, problem);
}

const MORE = 'See the page "Scaling" of the documentation.';

function partitionsProblem(
  record: string,
  { count, owner, namespace }: Pick<Partitions, 'count' | 'owner' | 'namespace'>,
): string {
  const [from, to] = record.split('>');
  const command = (target: string | number) =>
    shownCommand(namespace, 'repartition', '--from', String(from), '--to', String(target));
  if (to !== undefined) {
    return (
      `are being moved from ${from} to ${to} partitions. Run \`${command(to)}\` until it has finished, and set option ` +
      `\`partitions\` to ${to}. ${MORE}`
    );
  }
  const differs = `are in ${shownCount(record)}, but option \`partitions\` is ${count}. Set it to ${record}, or use another namespace.`;
  if (owner.holds !== 'sessions') return differs;
  return `${differs} To move them, stop all instances and run \`${command(count)}\`. ${MORE}`;
}
