import { shownText } from '@nest-session/core/internal';
import type { Cluster, Redis } from 'ioredis';
import { isCluster } from './node-with.js';

/** Which server a connection leads to, for a log line. Undefined when it does not say so, or may not. */
export async function shownServer(client: Redis | Cluster): Promise<string | undefined> {
  const info = await client.info('server').catch(() => '');
  // Valkey says, too, which version of Redis it is like.
  const [, valkey] = /^valkey_version:(\S+)/m.exec(info) ?? [];
  const [, redis] = /^redis_version:(\S+)/m.exec(info) ?? [];
  if (valkey !== undefined) return `Valkey ${shownText(valkey)}`;
  return redis === undefined ? undefined : `Redis ${shownText(redis)}`;
}

/** What a connection leads to: one server, the one that Sentinels name, or a Cluster. */
export function shownKind(client: Redis | Cluster): string {
  if (!isCluster(client)) return client.options.sentinels ? 'Sentinel' : 'standalone';
  const primaries = client.nodes('master').length;
  if (primaries === 0) return 'Cluster';
  return `Cluster with ${primaries} ${primaries === 1 ? 'primary' : 'primaries'}`;
}
