import { shownText } from '@nest-session/core/internal';
import type { Cluster, Redis } from 'ioredis';
import { infoOf } from './info-of.js';
import { isCluster } from './node-with.js';

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

/** That the scripts do not run on such a server; undefined where they do, or where its version is unknown. */
export function tooOldProblem([name, version]: ReturnType<typeof serverIn>): string | undefined {
  const [major = NaN, minor = 0] = (version ?? '').split('.').map(Number);
  const [oldest, least] = OLDEST[name];
  const isOld = version !== undefined && (major < oldest || (major === oldest && minor < least));
  return isOld ? `${name} ${oldest}.${least} is the oldest that works` : undefined;
}

/** What a connection leads to: one server, the one that Sentinels name, or a Cluster. */
export function shownKind(client: Redis | Cluster): string {
  if (!isCluster(client)) return client.options.sentinels ? 'Sentinel' : 'standalone';
  const primaries = client.nodes('master').length;
  if (primaries === 0) return 'Cluster';
  return `Cluster with ${primaries} ${primaries === 1 ? 'primary' : 'primaries'}`;
}
