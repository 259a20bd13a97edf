import { shownText } from '@nest-session/core/internal';
import { type Cluster, type ClusterNode, Redis, type RedisOptions } from 'ioredis';
import { type ClusterAddress, isOfCluster, type RedisAddress, type ServerAddress } from './redis-address.options.js';

/** Where Redis is, for a log line: without user and password, and never the whole url. */
export function shownAddress(address: RedisAddress): string {
  const { cluster } = isOfCluster(address) ? address : {};
  const isGiven = 'client' in (cluster ?? address);
  return [...partsOf(address), ...(isGiven ? ['as in option `client`'] : [])].join(', ');
}

/** Whether connections to it speak TLS. */
export function usesTls(address: RedisAddress): boolean {
  const [, ...parts] = partsOf(address);
  return parts.includes('TLS');
}

function partsOf(address: RedisAddress): string[] {
  return isOfCluster(address) ? partsOfCluster(address) : partsOfServer(optionsOf(address));
}

function partsOfServer({ host, port, path, sentinels, name, db, tls }: RedisOptions): string[] {
  const server = path === undefined ? shownNode({ host, port }) : shownText(path);
  const where = sentinels
    ? `master ${shownText(String(name))} of the Sentinels ${sentinels.map(shownNode).join(' ')}`
    : server;
  return [where, ...(tls ? ['TLS'] : []), ...(db ? [`database ${Number(db)}`] : [])];
}

function partsOfCluster({ cluster }: ClusterAddress): string[] {
  const nodes: readonly ClusterNode[] = 'client' in cluster ? startupNodesOf(cluster.client) : cluster.nodes;
  const options = 'client' in cluster ? cluster.client.options.redisOptions : cluster.options;
  const servers = nodes.map(parsed);
  const hasTls = (options?.tls ?? servers.find(({ tls }) => tls)) !== undefined;
  return [`Cluster of ${servers.map(shownNode).join(' ')}`, ...(hasTls ? ['TLS'] : [])];
}

function shownNode({ host, port }: { readonly host?: string | undefined; readonly port?: number | undefined }): string {
  return shownText(`${host}:${port}`);
}

function optionsOf(address: ServerAddress): RedisOptions {
  if ('client' in address) return address.client.options;
  return 'sentinels' in address ? address.sentinels : parsed(address.url);
}

/** What ioredis makes of the address of a server. Such a client does not connect. */
function parsed(node: ClusterNode): RedisOptions {
  return new Redis(node as string, { lazyConnect: true }).options;
}

/** A private member of ioredis. */
function startupNodesOf(client: Cluster): readonly ClusterNode[] {
  return (client as unknown as { readonly startupNodes?: readonly ClusterNode[] }).startupNodes ?? [];
}
