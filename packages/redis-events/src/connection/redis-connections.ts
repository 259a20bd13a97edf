import { Inject } from '@nestjs/common';
import type { Cluster, ClusterOptions, Redis, RedisOptions } from 'ioredis';
import { closeConnection } from './close-connection.js';
import { ClusterNodes, type RedisNodes, type RequestNodes, SingleNode } from './redis-nodes.js';
import { OutageLog } from './outage.log.js';
import { loginSourceOf } from './login.js';
import { openCluster, openNode, openRedis, preparedNode } from './open-redis.js';
import { isAnswer } from './server-faults.js';
import { letScriptsWaitForSlotMigration } from './slot-migration.js';
import { WriteBatch } from './write-batch.js';
import { type ClusterAddress, isOfCluster, type RedisAddress, type ServerAddress } from './redis-address.options.js';

export interface ConnectionOptions {
  readonly connection: RedisAddress;
  readonly namespace: string;
  readonly commandTimeout: number;
  /** How many replicas must have each change of a request. */
  readonly replicas: number;
  readonly requireAtStart: boolean;
  /** Whether the namespace is that of another library, into whose keys nothing is written. @default false */
  readonly isGuest?: boolean;
}

export const CONNECTION_OPTIONS = Symbol('CONNECTION_OPTIONS');
export const REDIS_CONNECTIONS = Symbol('REDIS_CONNECTIONS');

/** One connection per purpose, on a Cluster one to each node, each with its own rules. */
export interface RedisConnections {
  /** For requests: sends a command at most once and queues nothing. Used only through RequestConnection. */
  readonly request: RequestNodes;
  /** The same; with the option `replicas` others, which hold up no load while they wait for replicas. */
  readonly writes: RequestNodes;
  /** For background work: waits for Redis to return, and re-sends commands without a reply; its scripts allow that. */
  readonly background: Redis;
  /** For key events that tell what is due. Its KeyspaceNotificationListener opens, closes and subscribes it. */
  readonly subscriber: RedisNodes;
  /** For key events that the application listens to; opened with the first subscription. */
  readonly notifications: RedisNodes;
  /** For PartitionSignals, which opens, closes and subscribes it where there are several partitions. */
  readonly signals: RedisNodes;
  /** With one partition: waits for events. No command timeout: nobody would get what arrives after it. */
  readonly reader: Redis | undefined;
  /** Waits for events to broadcast, as `reader` does; opened with the first broadcast handler. */
  readonly broadcast: Redis | undefined;
}

export function connectionToken(name: keyof RedisConnections): string {
  return `RedisSession:${name}`;
}

export const InjectConnection = (name: keyof RedisConnections) => Inject(connectionToken(name));

const retryAfter = (longestPause: number) => (attempt: number) => Math.min(50 * 2 ** attempt, longestPause);

const LONGEST_PAUSE = 1000;
// TCP does not notice a peer that vanished while nothing is sent. Longer than the readers block.
const SILENCE = 10_000;
// From then on, TCP asks whether the other side of a silent connection is there: networks forget such connections.
const KEEP_ALIVE = 30_000;
// A Sentinel that is connected and does not reply. ioredis would never ask another one.
const SILENCE_OF_SENTINEL = 1000;

const retryStrategy = retryAfter(LONGEST_PAUSE);

/** Rules for all connections. They override those of the application's client. */
const COMMON: RedisOptions = {
  lazyConnect: true,
  // Never gives up: sessions must work again as soon as Redis does.
  retryStrategy,
  sentinelRetryStrategy: retryStrategy,
  sentinelCommandTimeout: SILENCE_OF_SENTINEL,
  keepAlive: KEEP_ALIVE,
  maxRetriesPerRequest: null,
  // The server is no longer the master; a new connection finds the current one. The command is not re-sent, so that a
  // server that stays read-only is not asked for ever.
  reconnectOnError: (error) => error.message.startsWith('READONLY'),
  enableOfflineQueue: true,
  autoResendUnfulfilledCommands: true,
  enableAutoPipelining: false,
  commandTimeout: undefined,
  blockingTimeout: undefined,
  stringNumbers: false,
  // Replies have the same form with each version of ioredis.
  protocol: 2,
  replyMapping: 'legacy',
  // They would take the place of commands.
  scripts: undefined,
};

const OF_CLUSTER: ClusterOptions = {
  lazyConnect: true,
  clusterRetryStrategy: retryStrategy,
  clusterNodeRetryStrategy: null,
  enableOfflineQueue: true,
  // The partitions of other primaries can be used.
  enableReadyCheck: false,
  scaleReads: 'master',
  maxRedirections: Number.MAX_SAFE_INTEGER,
  retryDelayOnMoved: 0,
  retryDelayOnFailover: 100,
  retryDelayOnClusterDown: 100,
  retryDelayOnTryAgain: 100,
  slotsRefreshTimeout: 1000,
  slotsRefreshInterval: 5000,
  enableAutoPipelining: false,
  scripts: undefined,
};

function requestConnectionOptions(commandTimeout: number): RedisOptions {
  return {
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false,
    // A request waits for the end of the pause even when Redis is back, and must still meet its command timeout.
    retryStrategy: retryAfter(commandTimeout / 4),
    // Short: a connection that died silently fails every request until it is replaced.
    socketTimeout: 2 * commandTimeout,
  };
}

// ioredis re-subscribes without handling errors: a connection lost at that moment would end the process.
const OF_SUBSCRIBERS: RedisOptions = { autoResubscribe: false, socketTimeout: SILENCE };

const OF_SIGNALS: RedisOptions = { ...OF_SUBSCRIBERS, autoResendUnfulfilledCommands: false, enableOfflineQueue: false };

type SharedName = 'request' | 'writes' | 'background';

/** Those that another module uses as well. Not all of them: each is counted as shared. */
export type SharedConnections = Pick<RedisConnections, SharedName> & {
  readonly [Own in Exclude<keyof RedisConnections, SharedName>]?: never;
};

export interface ConnectionsToShare {
  readonly address: RedisAddress;
  readonly connections: SharedConnections;
}

export const CONNECTIONS_TO_SHARE = Symbol('CONNECTIONS_TO_SHARE');

/** How many modules use a connection, where that is not one. */
const users = new WeakMap<object, number>();

/** So many modules more use a connection. Returns how many do. */
function addUsers(connection: object, count: number): number {
  const all = (users.get(connection) ?? 1) + count;
  users.set(connection, all);
  return all;
}

export function isShared(connection: object): boolean {
  return addUsers(connection, 0) > 1;
}

export function endSharing(connection: object): void {
  users.delete(connection);
}

const closed = new WeakSet<RedisConnections>();

/** The connections, not connected yet. `shared`: takes these from another module, and connects no second time. */
export function createConnections(
  options: ConnectionOptions,
  log = new OutageLog(),
  shared?: SharedConnections,
): RedisConnections {
  if (shared) {
    const { request, writes, background } = shared;
    for (const each of distinct<object>({ request, writes, background })) addUsers(each, 1);
  }
  const { connection, commandTimeout, replicas } = options;
  const { background, nodes, waiting } = isOfCluster(connection)
    ? openersOfCluster(connection, options, log, shared)
    : openersOfServer(connection, options, log, shared);
  const forRequests = (name: string) => nodes(name, requestConnectionOptions(commandTimeout));
  const request = shared?.request ?? forRequests('request');
  return {
    request,
    // Without replicas, requests need no connection of their own for what they write.
    writes: shared?.writes ?? (replicas > 0 ? forRequests('writes') : request),
    background,
    subscriber: nodes('subscriber', OF_SUBSCRIBERS),
    notifications: nodes('notifications', OF_SUBSCRIBERS),
    signals: nodes('signals', OF_SIGNALS),
    reader: waiting('reader'),
    broadcast: waiting('broadcast'),
  };
}

/** Closes all connections for good that no other module uses any more. Resolves as closeConnection() does. */
export async function closeConnections(connections: RedisConnections): Promise<void> {
  if (closed.has(connections)) return;
  closed.add(connections);
  const { background, reader, broadcast, ...nodes } = connections;
  const clients = [background, reader, broadcast].filter((client) => client !== undefined);
  await Promise.all([
    ...distinct(nodes).map(async (each) => addUsers(each, -1) === 0 && each.close()),
    ...clients.map(async (client) => addUsers(client, -1) === 0 && closeConnection(client)),
  ]);
}

function distinct<T>(connections: Readonly<Record<string, T>>): T[] {
  return [...new Set(Object.values(connections))];
}

/** How the connections of a module are opened. `waiting`: one that waits for events. */
function openersOfServer(
  address: ServerAddress,
  options: ConnectionOptions,
  log: OutageLog,
  shared: SharedConnections | undefined,
) {
  const login = loginSourceOf(address);
  const open = (name: string, rules: RedisOptions): Redis => {
    const client = watched(openRedis(address, { ...COMMON, ...rules, ...nameOf(options, name) }, login), log);
    // Where the database of the url cannot be used, ioredis would go on in database 0.
    return client.on('error', (error: Error & { readonly command?: { readonly name?: string } }) => {
      if (isAnswer(error) && error.command?.name === 'select') client.disconnect(true);
    });
  };
  const waiting = (name: string): Redis | undefined => open(name, { socketTimeout: SILENCE });
  const background = shared?.background ?? open('background', { socketTimeout: SILENCE });
  // Events are read many at once, and so are their data read and their results recorded.
  WriteBatch.on(background);
  const nodes = (name: string, rules: RedisOptions): RequestNodes => new SingleNode(open(name, rules));
  return { background, waiting, nodes };
}

function openersOfCluster(
  address: ClusterAddress,
  options: ConnectionOptions,
  log: OutageLog,
  shared: SharedConnections | undefined,
): ReturnType<typeof openersOfServer> {
  // Both kinds of clients have all commands.
  const background = (shared?.background as unknown as Cluster | undefined) ?? clientOfCluster(address, options, log);
  const login = loginSourceOf(address);
  const nodes = (name: string, rules: RedisOptions): ClusterNodes =>
    new ClusterNodes(
      background,
      (host, port, known) => {
        const its = { ...(known?.options ?? background.options.redisOptions), host, port };
        return watched(openNode({ ...its, ...COMMON, ...rules, ...nameOf(options, name) }, login), log);
      },
      (client) => log.forget(client),
    );
  // No command waits for events of two slots.
  return { background: background as unknown as Redis, waiting: () => undefined, nodes };
}

function clientOfCluster(address: ClusterAddress, options: ConnectionOptions, log: OutageLog): Cluster {
  const redisOptions = { ...COMMON, socketTimeout: SILENCE, ...nameOf(options, 'background') };
  const background = openCluster(address, { ...OF_CLUSTER, redisOptions });
  const login = loginSourceOf(address);
  background.on('+node', (node: Redis) => {
    WriteBatch.on(node);
    letScriptsWaitForSlotMigration(node);
    handleErrorsOfAsking(node);
    withDuplicates(node, (client) => {
      preparedNode(client, login);
      log.watchNode(client);
      client.on('close', () => endSocketTimeout(client));
    });
  });
  log.watch(background);
  return background;
}

function nameOf({ namespace }: ConnectionOptions, name: string): RedisOptions {
  return { connectionName: `${namespace}:${name}` };
}

function watched(client: Redis, log: OutageLog): Redis {
  log.watch(client);
  return client.on('close', () => endSocketTimeout(client));
}

/** ioredis 5 leaves this timer running: it keeps the process alive, and closes the next connection. */
function endSocketTimeout(client: Redis): void {
  const internals = client as unknown as { socketTimeoutTimer: NodeJS.Timeout | undefined };
  clearTimeout(internals.socketTimeoutTimer);
  internals.socketTimeoutTimer = undefined;
}

function withDuplicates(node: Redis, prepare: (client: Redis) => void): void {
  const duplicate = node.duplicate.bind(node);
  node.duplicate = (override) => {
    const copy = duplicate(override);
    prepare(copy);
    return copy;
  };
  prepare(node);
}

/** ioredis leaves an error of ASKING unhandled, such as that of a missing right: it would end the process. */
function handleErrorsOfAsking(node: Redis): void {
  const asking = node.asking.bind(node);
  node.asking = async () => asking().catch(() => 'OK');
}
