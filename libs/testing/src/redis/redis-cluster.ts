import { freePort } from '../net/free-port.js';
import { eventually } from '../wait/eventually.js';
import { askRedis } from './ask-redis.js';
import { agree, type KnownNode, ownersIn, SLOTS, viewOf } from './cluster-view.js';
import { RedisServer, type RedisServerOptions } from './redis.server.js';

/** The options of a private Redis Cluster. */
export interface RedisClusterOptions {
  /** The number of primaries, at least three. @default 3 */
  readonly primaries?: number | undefined;
  /** The number of replicas of each primary. @default 0 */
  readonly replicas?: number | undefined;
  /** After so many milliseconds without a reply, the other nodes consider a node failed. @default 2000 */
  readonly nodeTimeout?: number | undefined;
  /** Further arguments of each redis-server. They override those of `RedisCluster`. */
  readonly args?: readonly string[] | undefined;
}

const BUS_PORT_ATTEMPTS = 10;
// Under load, an election takes long.
const PATIENCE = { timeout: 60_000, interval: 50 };
const KEYS_PER_CALL = 100;

/**
 * A real Redis Cluster for one test or test file. Its nodes are private `RedisServer`s, which you can kill, freeze and
 * restart. A failed primary is replaced by its replica. Without a replica, the slots of a failed primary are
 * unavailable, and all other slots stay available.
 */
export class RedisCluster {
  /** All nodes. At the start, the primaries come first. */
  readonly nodes: readonly RedisServer[];

  protected constructor(nodes: readonly RedisServer[]) {
    this.nodes = nodes;
  }

  /** Starts the nodes, and resolves when each of them can serve its slots and every replica is up to date. */
  static async start(options: RedisClusterOptions = {}): Promise<RedisCluster> {
    const { primaries = 3, replicas = 0, nodeTimeout = 2000, args = [] } = options;
    const started = await Promise.allSettled(
      Array.from({ length: primaries * (1 + replicas) }, () =>
        startNode((node) => this.startServer(node), nodeTimeout, args),
      ),
    );
    const cluster = new this(started.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : [])));
    try {
      const failed = started.find((each) => each.status === 'rejected');
      if (failed) throw failed.reason;
      await cluster.#form(primaries);
      return cluster;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  /** Starts one node. Subclasses may override it. */
  protected static startServer(options: RedisServerOptions): Promise<RedisServer> {
    return RedisServer.start(options);
  }

  /** The addresses of all nodes, for a client of the cluster. */
  get addresses(): { host: string; port: number }[] {
    return this.nodes.map(({ port }) => ({ host: '127.0.0.1', port }));
  }

  /** Ends all nodes and removes their folders. Resolves when the processes have ended. You may call it again. */
  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop()));
  }

  /** The primary that has a slot. */
  async primaryOf(slot: number): Promise<RedisServer> {
    return this.#nodeAt(ownersIn(await this.untilStable())[slot]);
  }

  /** The replicas of a primary. */
  async replicasOf(primary: RedisServer): Promise<RedisServer[]> {
    const view = await this.untilStable();
    const { id } = knownAs(view, primary);
    return view.filter((node) => node.primary === id).map(({ port }) => this.#nodeAt(port));
  }

  /** Moves slots with their keys one by one, as a reshard does. Clients may continue meanwhile. */
  async moveSlots(slots: Iterable<number>, to: RedisServer): Promise<void> {
    const view = await this.untilStable();
    const owners = ownersIn(view);
    const target = knownAs(view, to).id;
    for (const slot of slots) {
      const from = this.#nodeAt(owners[slot]);
      if (from === to) continue;
      await askRedis(to.port, [['CLUSTER', 'SETSLOT', slot, 'IMPORTING', knownAs(view, from).id]]);
      await askRedis(from.port, [['CLUSTER', 'SETSLOT', slot, 'MIGRATING', target]]);
      await moveKeys(slot, from, to);
      // Tell the new owner first, because the old owner still redirects until it is told.
      const others = view.filter(
        ({ flags, port }) => flags.includes('master') && port !== to.port && port !== from.port,
      );
      for (const port of [to.port, from.port, ...others.map((other) => other.port)]) {
        await askRedis(port, [['CLUSTER', 'SETSLOT', slot, 'NODE', target]]);
      }
    }
    await this.untilStable();
  }

  /** Makes a replica the primary, and its primary a replica. No data is lost. Resolves to the new primary. */
  async failover(primary: RedisServer): Promise<RedisServer> {
    const [replica] = await this.replicasOf(primary);
    if (!replica) throw new Error('A primary without a replica cannot be replaced');
    await askRedis(replica.port, [['CLUSTER', 'FAILOVER']]);
    await eventually(async () => knownAs(await this.untilStable(), replica).flags.includes('master'), PATIENCE);
    return replica;
  }

  /**
   * Resolves when every slot has a running primary, and all nodes that reply agree on that. After a kill, that is when
   * a replica has taken over. Resolves to the view that they share.
   */
  untilStable(): Promise<readonly KnownNode[]> {
    return eventually(async () => {
      const views = await Promise.all(this.nodes.map(viewOf));
      const replying = new Set(this.nodes.filter((_, i) => views[i]).map(({ port }) => port));
      const [view, ...others] = views.filter((each) => each !== undefined);
      if (!view || !ownersIn(view).every((port) => port !== undefined && replying.has(port))) {
        throw new Error('No running primary has some of the slots');
      }
      if (!others.every((other) => agree(view, other, replying))) throw new Error('The nodes do not agree');
      return view;
    }, PATIENCE);
  }

  async #form(primaries: number): Promise<void> {
    const [first] = this.nodes;
    for (const [i, { port }] of this.nodes.entries()) await askRedis(port, [['CLUSTER', 'SET-CONFIG-EPOCH', i + 1]]);
    for (const [i, { port }] of this.nodes.slice(0, primaries).entries()) {
      const [begin, end] = [i, i + 1].map((n) => Math.round((n * SLOTS) / primaries)) as [number, number];
      await askRedis(port, [['CLUSTER', 'ADDSLOTSRANGE', begin, end - 1]]);
    }
    for (const { port } of this.nodes.slice(1)) {
      const [, bus] = (await askRedis(port, [['CONFIG', 'GET', 'cluster-port']]))[0] as [string, string];
      await askRedis(first!.port, [['CLUSTER', 'MEET', '127.0.0.1', port, bus]]);
    }
    await eventually(() => this.#knowEachOther(), PATIENCE);
    const view = await this.untilStable();
    for (const [i, replica] of this.nodes.slice(primaries).entries()) {
      const { id } = knownAs(view, this.nodes[i % primaries]!);
      await askRedis(replica.port, [['CLUSTER', 'REPLICATE', id]]);
    }
    await eventually(() => this.#areReady(this.nodes.slice(primaries)), PATIENCE);
  }

  async #knowEachOther(): Promise<boolean> {
    const views = await Promise.all(this.nodes.map(viewOf));
    return views.every(
      (view) => view?.length === this.nodes.length && view.every(({ flags }) => !flags.includes('handshake')),
    );
  }

  /** Whether the replicas have all data, and every node knows them and can serve its slots. */
  async #areReady(replicas: readonly RedisServer[]): Promise<boolean> {
    const states = await Promise.all(
      this.nodes.map(async (node) => {
        const [info, replication] = await askRedis(node.port, [
          ['CLUSTER', 'INFO'],
          ['INFO', 'replication'],
        ]);
        const known = (await viewOf(node))?.filter(({ flags }) => flags.includes('slave')).length;
        const isSynchronized = !replicas.includes(node) || String(replication).includes('master_link_status:up');
        return String(info).includes('cluster_state:ok') && known === replicas.length && isSynchronized;
      }),
    );
    return states.every(Boolean);
  }

  #nodeAt(port: number | undefined): RedisServer {
    const node = this.nodes.find((each) => each.port === port);
    if (!node) throw new Error(`No node of this cluster listens on port ${port}`);
    return node;
  }
}

async function startNode(
  start: (options: RedisServerOptions) => Promise<RedisServer>,
  nodeTimeout: number,
  args: readonly string[],
): Promise<RedisServer> {
  for (let attempt = 1; ; attempt++) {
    const cluster = {
      enabled: 'yes',
      port: await freePort(),
      'node-timeout': nodeTimeout,
      'config-file': 'nodes.conf',
      'announce-ip': '127.0.0.1',
      'require-full-coverage': 'no',
      'allow-replica-migration': 'no',
    };
    const own = Object.entries(cluster).flatMap(([name, value]) => [`--cluster-${name}`, `${value}`]);
    try {
      // By default, a primary waits five seconds for other replicas that may want the same copy.
      return await start({ args: [...own, '--repl-diskless-sync-delay', '0', ...args] });
    } catch (error) {
      const portWasTaken = error instanceof Error && error.message.includes('Address already in use');
      if (!portWasTaken || attempt === BUS_PORT_ATTEMPTS) throw error;
    }
  }
}

function knownAs(view: readonly KnownNode[], { port }: RedisServer): KnownNode {
  const node = view.find((each) => each.port === port);
  if (!node) throw new Error(`No node of this cluster listens on port ${port}`);
  return node;
}

async function moveKeys(slot: number, from: RedisServer, to: RedisServer): Promise<void> {
  for (;;) {
    const [keys] = (await askRedis(from.port, [['CLUSTER', 'GETKEYSINSLOT', slot, KEYS_PER_CALL]])) as [string[]];
    if (keys.length === 0) return;
    await askRedis(from.port, [['MIGRATE', '127.0.0.1', to.port, '', 0, 5000, 'KEYS', ...keys]]);
  }
}
