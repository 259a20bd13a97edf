import { shownError, shownText } from '@nest-session/core/internal';
import { type Cluster, Redis, type RedisOptions } from 'ioredis';
import { isCluster } from './node-with.js';
import { type ClusterAddress, isOfCluster, type RedisAddress, type ServerAddress } from './redis-address.options.js';
import { SessionStoreError } from '@nest-session/core';
import { adviceFor } from '../logging/advice.js';

/** Which server a connection leads to, for a log line. Undefined when it does not say so, or may not. */
export async function shownServer(client: Redis | Cluster): Promise<string | undefined> {
  const [name, version] = serverIn(infoOf(await client.info('server').catch(() => '')));
  return version === undefined ? undefined : `${name} ${shownText(version)}`;
}

type ServerName = 'Redis' | 'Valkey';

/** What a server says of itself in the fields of INFO. Valkey says, too, which version of Redis it is like. */
export function serverIn(info: ReadonlyMap<string, string>): [name: ServerName, version: string | undefined] {
  const valkey = info.get('valkey_version');
  return valkey === undefined ? ['Redis', info.get('redis_version')] : ['Valkey', valkey];
}

const OLDEST: Readonly<Record<ServerName, readonly [major: number, minor: number]>> = { Redis: [7, 0], Valkey: [7, 2] };

export function tooOldProblem([name, version]: ReturnType<typeof serverIn>): string | undefined {
  const [major = NaN, minor = 0] = (version ?? '').split('.').map(Number);
  const [oldest, least] = OLDEST[name];
  const isOld = version !== undefined && (major < oldest || (major === oldest && minor < least));
  return isOld ? `${name} ${oldest}.${least} is the oldest that works` : undefined;
}

export function shownKind(client: Redis | Cluster): string {
  if (!isCluster(client)) return client.options.sentinels ? 'Sentinel' : 'standalone';
  const primaries = client.nodes('master').length;
  if (primaries === 0) return 'Cluster';
  return `Cluster with ${primaries} ${primaries === 1 ? 'primary' : 'primaries'}`;
}

/** Where Redis is, for a log line: without user and password, and never the whole url. */
export function shownAddress(address: RedisAddress): string {
  const { cluster } = isOfCluster(address) ? address : {};
  const isGiven = 'client' in (cluster ?? address);
  return [...partsOf(address), ...(isGiven ? ['as in option `client`'] : [])].join(', ');
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
  const isGiven = 'client' in cluster;
  const options = isGiven ? cluster.client.options.redisOptions : cluster.options;
  // Those of a client are known when it has connected.
  const nodes = isGiven ? cluster.client.nodes().map(({ options: ofNode }) => ofNode) : cluster.nodes;
  const where = nodes.length > 0 ? `Cluster of ${nodes.map(shownNode).join(' ')}` : 'Cluster';
  return [where, ...(options?.tls ? ['TLS'] : [])];
}

function shownNode({ host, port }: { readonly host?: string | undefined; readonly port?: number | undefined }): string {
  return shownText(`${host}:${port}`);
}

function optionsOf(address: ServerAddress): RedisOptions {
  if ('client' in address) return address.client.options;
  // What ioredis makes of a url. Such a client does not connect.
  return 'sentinels' in address ? address.sentinels : new Redis(address.url, { lazyConnect: true }).options;
}

export function infoOf(reply: string): ReadonlyMap<string, string> {
  return new Map([...reply.matchAll(/^([^#:\r\n]+):([^\r\n]*)/gm)].map(([, name, value]) => [name!, value!]));
}

// A server without TLS waits for the rest of what it takes for a command.
const SILENCE = /no reply within|ETIMEDOUT/;

export function unreachableError(address: RedisAddress, cause: unknown): SessionStoreError {
  const reason = shownError(cause);
  const isOfTls = partsOf(address).slice(1).includes('TLS') && SILENCE.test(reason);
  const ofTls = isOfTls ? ': a port without TLS does not reply to TLS' : '';
  const advice = adviceFor(cause) || `. Start it, or correct its address${ofTls}`;
  return new SessionStoreError(`Redis (${shownAddress(address)}) cannot be reached: ${reason}${advice}`, { cause });
}
