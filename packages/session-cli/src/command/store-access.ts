import { InvalidSessionOptionsError, SessionStoreError } from '@nest-session/core';
import { SessionIds } from '@nest-session/core/internal';
import {
  closeConnections,
  createConnections,
  isAnswer,
  isReply,
  OutageLog,
  type Partitions,
  type RedisConnections,
  RequestConnection,
  scriptsOn,
  settledPartitions,
  settledWithin,
  shownCommand,
  storeError,
  unreachableError,
} from '@nest-session/redis-events/internal';
import { DeadlinePartitions } from '@nest-session/deadlines/redis/internal';
import {
  ID_PATTERN,
  keepingRules,
  type ResolvedRedisSessionOptions,
  resolveRedisSessionOptions,
  SessionPartitions,
  SessionScripts,
} from '@nest-session/redis/internal';
import {
  modeOfNamespace,
  namespaceOfSpring,
  namespaceProblemWith,
  type SpringMode,
} from '@nest-session/spring/internal';
import type { CommandCall } from './command.js';

// Milliseconds that a command waits for a connection, and for each reply.
const PATIENCE = 5000;

export interface ReachedRedis {
  readonly connections: RedisConnections;
  readonly connection: RequestConnection;
  readonly options: ResolvedRedisSessionOptions;
}

/** A namespace in it, with as many partitions as applications have recorded there. */
export interface OpenStore<Kind = SessionPartitions | DeadlinePartitions> extends ReachedRedis {
  readonly partitions: Kind;
  /** A session id as logs show it: a fingerprint, unless the instances have recorded that no id is a token. */
  readonly shownId: (id: string) => string;
}

type Call = Pick<CommandCall, 'address' | 'signal'>;

export function withRedis<T>(
  { address, signal }: Call,
  work: (redis: ReachedRedis) => Promise<T>,
  mode: SpringMode | undefined = modeOfNamespace(address.namespace),
): Promise<T> {
  const options = resolveRedisSessionOptions(
    { ...address, commandTimeout: `${PATIENCE}ms`, notifications: 'off' },
    namespaceProblemWith(mode),
  );
  const workOn = (connections: RedisConnections) =>
    work({ connections, connection: new RequestConnection(connections.request, options), options });
  return withConnections(options, workOn, signal);
}

/** Closes the connections at once when the signal comes. @throws SessionStoreError when Redis does not reply in time */
export async function withConnections<T>(
  options: ResolvedRedisSessionOptions,
  work: (connections: RedisConnections) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const outage = new OutageLog();
  const connections = createConnections(options, outage);
  const close = () => void closeConnections(connections);
  signal?.addEventListener('abort', close);
  try {
    await reach(connections, options, outage);
    return await work(connections);
  } catch (error) {
    throw isAnswer(error) ? storeError(error) : error;
  } finally {
    signal?.removeEventListener('abort', close);
    await closeConnections(connections);
  }
}

interface Access {
  /** Whether it changes the data, which another version of the library may have written. */
  readonly writes: boolean;
  /** Whether it also knows the namespace beside that of Spring. */
  readonly knowsShared?: boolean;
}

const READS: Access = { writes: false };
export const WRITES: Access = { writes: true };

export function withStore<T>(call: Call, work: (store: OpenStore) => Promise<T>, access = READS): Promise<T> {
  return withRedis(call, async (redis) => work(await openStore(redis, access)));
}

export function withSessions<T>(
  call: Call,
  work: (store: OpenStore<SessionPartitions>) => Promise<T>,
  access = READS,
): Promise<T> {
  const ofSessions = async (store: OpenStore) => {
    const { partitions } = store;
    if (!access.knowsShared) assertNotBeside(partitions);
    if (partitions instanceof SessionPartitions) return work({ ...store, partitions });
    throw notForCommand(partitions, 'holds deadlines, and this command is for sessions.');
  };
  return withStore(call, ofSessions, access);
}

/** @throws InvalidSessionOptionsError for a namespace beside that of Spring, whose sessions are not kept as ours are */
export function assertNotBeside(partitions: Partitions): void {
  if (partitions.owner.holds !== 'shared-sessions') return;
  const command = shownCommand(namespaceOfSpring(partitions.namespace), 'spring');
  throw notForCommand(partitions, `has what is kept beside sessions of Spring Session. For those, run: ${command}`);
}

function notForCommand({ namespace }: Partitions, why: string): InvalidSessionOptionsError {
  return new InvalidSessionOptionsError('RedisSessionModule', [`Namespace ${JSON.stringify(namespace)} ${why}`]);
}

export async function openStore(redis: ReachedRedis, access = READS): Promise<OpenStore> {
  const { connection, options } = redis;
  const { namespace } = options;
  const { meta } = new SessionPartitions(namespace);
  const [holds, form] = await connection
    .run((client) => client.hmget(meta, 'holds', 'ids'), meta)
    .catch(noRecord(meta));
  const partitionsOf = (count?: number): SessionPartitions | DeadlinePartitions =>
    holds === 'deadlines'
      ? new DeadlinePartitions(namespace, count)
      : new SessionPartitions(namespace, count, holds === 'shared-sessions' ? { holds } : {});
  const partitions = partitionsOf(await settledPartitions(connection, partitionsOf(), access));
  const ids = new SessionIds(undefined, form === 'hashed' ? form : 'plain');
  return { ...redis, partitions, shownId: (id) => ids.shown(id) };
}

/** No other command could name that key, because each reads it first. */
function noRecord(meta: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof SessionStoreError && isReply(error.cause, 'WRONGTYPE'))) throw error;
    const problem = `${meta} is no hash: something else has written it. Stop the applications, and rename it`;
    throw new SessionStoreError(problem, { cause: error });
  };
}

async function reach(connections: RedisConnections, options: ResolvedRedisSessionOptions, outage: OutageLog) {
  const connected = connections.request.connect();
  const hasEnded = await settledWithin(PATIENCE, connected);
  const refuse = (cause: unknown): never => {
    throw unreachableError(options.connection, cause);
  };
  if (!hasEnded) refuse(outage.reason ?? new Error(`no reply within ${PATIENCE} ms`));
  // ioredis itself rejects with `Connection is closed.`
  await connected.catch((error: unknown) => refuse(outage.reason ?? error));
}

export function sessionScriptsOf({
  options,
  partitions,
}: Pick<OpenStore<SessionPartitions>, 'options' | 'partitions'>) {
  return scriptsOn((client) => new SessionScripts(client, partitions, keepingRules(options, partitions)));
}

const ID = new RegExp(ID_PATTERN, 'g');

/** A key, member or id, with each session id as logs show it. */
export function shownExample(text: string, shownId: (id: string) => string): string {
  return text.replace(ID, shownId);
}
