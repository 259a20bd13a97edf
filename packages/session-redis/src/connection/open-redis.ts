import { Cluster, type ClusterOptions, Redis, type RedisOptions } from 'ioredis';
import type { ClusterAddress, ServerAddress } from '../configuration/redis-address.options.js';

/** A connection to the server, or to the one that its Sentinels name, with these rules. Not connected yet. */
export function openRedis(address: ServerAddress, rules: RedisOptions): Redis {
  if ('client' in address) return address.client.duplicate(rules);
  if ('sentinels' in address) return new Redis({ ...address.sentinels, ...rules });
  return new Redis(address.url, address.tls ? { ...rules, tls: address.tls } : rules);
}

/** A client of the Cluster with these rules. Not connected yet. */
export function openCluster({ cluster }: ClusterAddress, rules: ClusterOptions): Cluster {
  if ('client' in cluster) return cluster.client.duplicate([], rules);
  return new Cluster([...cluster.nodes], { ...rules, redisOptions: { ...cluster.options, ...rules.redisOptions } });
}
