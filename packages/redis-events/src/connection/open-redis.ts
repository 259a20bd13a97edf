import { clearTimeout, setTimeout } from 'node:timers';
import { Cluster, type ClusterOptions, Redis, type RedisOptions } from 'ioredis';
import type { ClusterAddress, ServerAddress } from './redis-address.options.js';
import { sendOwnCommands } from './own-commands.js';
import { internalsOf, logInFrom, type LoginSource } from './login.js';

// Milliseconds for the replies of a connection that was silent for too long.
const LAST_WAIT = 100;

/** A connection to the server, or to the one that its Sentinels name, with these rules. Not connected yet. */
export function openRedis(address: ServerAddress, rules: RedisOptions, login?: LoginSource): Redis {
  return preparedNode(clientOf(address, rules), login);
}

export function openNode(options: RedisOptions, login?: LoginSource): Redis {
  return preparedNode(new Redis(options), login);
}

export function openCluster(address: ClusterAddress, rules: ClusterOptions): Cluster {
  return sendOwnCommands(clientOfCluster(address, rules));
}

/** Also one that ioredis makes. */
export function preparedNode(client: Redis, login?: LoginSource): Redis {
  const { connector } = internalsOf(client);
  const connect = connector.connect.bind(connector);
  // ioredis listens for one error of a stream. A second one, as after a refused TLS handshake, would end the process.
  connector.connect = async (...args) => letRepliesArrive((await connect(...args)).on('error', () => undefined));
  if (login) logInFrom(login, client);
  // Each service of each module listens to the connection: Node.js warns of the eleventh listener.
  return sendOwnCommands(client).setMaxListeners(0);
}

/** Node.js runs timers before it reads sockets: after a long pause, `socketTimeout` would close one with replies. */
function letRepliesArrive(stream: Redis['stream']): Redis['stream'] {
  const destroy = stream.destroy.bind(stream);
  stream.destroy = (error) => {
    if (error?.message.startsWith('Socket timeout') !== true) return destroy(error);
    const late = setTimeout(() => destroy(error), LAST_WAIT);
    const settle = () => {
      clearTimeout(late);
      stream.off('data', settle).off('close', settle);
    };
    return stream.on('data', settle).on('close', settle);
  };
  return stream;
}

function clientOf(address: ServerAddress, rules: RedisOptions): Redis {
  if ('client' in address) return address.client.duplicate(rules);
  if ('sentinels' in address) return new Redis({ ...address.sentinels, ...rules });
  // The query of a url may have options of ioredis. In `new Redis(url, rules)` they would override the rules.
  const { options } = new Redis(address.url, { lazyConnect: true });
  return new Redis({ ...options, ...rules, ...(address.tls && { tls: address.tls }) });
}

function clientOfCluster({ cluster }: ClusterAddress, rules: ClusterOptions): Cluster {
  const redisOptionsWith = (options: RedisOptions | undefined) => ({ ...options, ...rules.redisOptions });
  if ('client' in cluster) {
    const { client } = cluster;
    // ioredis 5 takes these in the place of those of the client, with its credentials and TLS.
    return client.duplicate([], { ...rules, redisOptions: redisOptionsWith(client.options.redisOptions) });
  }
  return new Cluster([...cluster.nodes], { ...rules, redisOptions: redisOptionsWith(cluster.options) });
}
