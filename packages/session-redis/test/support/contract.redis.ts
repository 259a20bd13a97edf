import { once } from 'node:events';
import { JsonAttributeSerializer, type SessionEvent } from '@nest-session/core';
import { SteppableRedisCluster, SteppableRedisServer } from '@nest-session/test-infrastructure';
import type { ContractStore } from '@nest-session/testing/contracts';
import { Redis } from 'ioredis';
import { resolveRedisSessionOptions } from '../../src/configuration/redis-session.options.js';
import { closeConnections, createConnections, type RedisConnections } from '../../src/connection/redis-connections.js';
import { RequestConnection } from '../../src/connection/request.connection.js';
import { SingleNode } from '../../src/connection/single-node.js';
import { SessionEventLoader } from '../../src/delivery/session-event.loader.js';
import { toStreamEntry } from '../../src/delivery/stream-entry.js';
import { OlderSessionSweeper } from '../../src/expiration/older-session.sweeper.js';
import { SessionExpirationSweeper } from '../../src/expiration/session-expiration.sweeper.js';
import type { SessionKeys } from '../../src/keys/session-keys.js';
import { SessionPartitions } from '../../src/keys/session-partitions.js';
import { SessionLedger } from '../../src/limits/session-ledger.js';
import { type RedisRepositoryOptions, RedisSessionRepository } from '../../src/repository/redis-session.repository.js';
import { SessionEpochs } from '../../src/repository/session-epochs.js';
import { scriptsOn } from '../../src/scripts/define-scripts.js';
import { SessionScripts } from '../../src/scripts/session/session.scripts.js';
import { BackgroundLimiter } from '../../src/timing/background.limiter.js';
import { KEEPING_RULES, MINUTE } from './store.fixture.js';
import { HandSignals } from './hand-signals.js';

const BATCH_SIZE = 100;

/** The connections of one node of an application. */
type Connections = Pick<RedisConnections, 'request' | 'background'>;

// A node of a Cluster that cannot be reached is waited for.
const CLUSTER_TIMEOUT = 5000;

/** A Redis, or a Redis Cluster, whose clock stands still, and stores in it, each in a namespace of its own and with two nodes. */
export class ContractRedis {
  #stores = 0;

  private constructor(
    private readonly server: Pick<SteppableRedisServer, 'stepClock' | 'stop'>,
    private readonly nodes: readonly [Connections, Connections],
    private readonly disconnect: () => Promise<unknown>,
    private readonly commandTimeout: number,
  ) {}

  static async open(): Promise<ContractRedis> {
    const server = await SteppableRedisServer.start();
    await server.stopClock();
    const clients = [new Redis(server.url), new Redis(server.url)] as const;
    // Each store has its listeners on them.
    for (const client of clients) client.setMaxListeners(0);
    const [one, two] = clients.map((client) => ({ request: new SingleNode(client), background: client }));
    const close = async () => clients.forEach((client) => client.disconnect());
    return new ContractRedis(server, [one!, two!], close, 10 * MINUTE);
  }

  static async openCluster(): Promise<ContractRedis> {
    const cluster = await SteppableRedisCluster.start();
    await cluster.stopClock();
    const options = resolveRedisSessionOptions({
      cluster: { nodes: cluster.addresses },
      commandTimeout: `${CLUSTER_TIMEOUT}ms`,
    });
    const nodes = [createConnections(options), createConnections(options)] as const;
    for (const { request, background } of nodes) {
      await background.connect();
      await request.connect();
      request.onOpen((client) => client.setMaxListeners(0));
    }
    return new ContractRedis(cluster, nodes, () => Promise.all(nodes.map(closeConnections)), CLUSTER_TIMEOUT);
  }

  store(options: RedisRepositoryOptions, count: number): ContractStore {
    const partitions = new SessionPartitions(`store-${++this.#stores}`, count);
    const [one, two] = this.nodes.map((each) => nodeOf(each, partitions, options, this.commandTimeout)) as [Node, Node];
    let sweeps = 0;
    return {
      repository: one.repository,
      other: two.repository,
      advance: (milliseconds) => this.server.stepClock(milliseconds),
      // The minute of a session's end passes up to a minute later.
      reportExpired: () =>
        Promise.all([
          (sweeps++ % 2 === 0 ? one : two).sweeper.runOnce({ ahead: MINUTE }),
          one.older.runOnce(),
          two.older.runOnce(),
        ]),
      events: () => this.#eventsOf(partitions, options),
      outage: (step) => this.#withoutConnection(step),
    };
  }

  async close(): Promise<void> {
    await this.disconnect();
    await this.server.stop();
  }

  async #eventsOf(partitions: SessionPartitions, options: RedisRepositoryOptions): Promise<SessionEvent[]> {
    const events = await Promise.all(partitions.all.map((partition) => this.#eventsIn(partition, options)));
    return events.flat().toSorted((a, b) => a.at - b.at);
  }

  async #eventsIn(partition: SessionKeys, { encryption }: RedisRepositoryOptions): Promise<SessionEvent[]> {
    const [{ background: client }] = this.nodes;
    const loader = new SessionEventLoader(client, { serializer: new JsonAttributeSerializer(), encryption });
    const replies = await client.xrange(partition.events, '-', '+');
    const events = await Promise.all(replies.map((reply) => loader.load(toStreamEntry(partition, reply))));
    return events.filter((event) => event !== undefined);
  }

  async #withoutConnection(step: () => Promise<void>): Promise<void> {
    const clients = this.nodes.flatMap(({ request }) => [...request.all]);
    const ended = clients.map((client) => once(client, 'end'));
    for (const client of clients) client.disconnect();
    await Promise.all(ended);
    try {
      await step();
    } finally {
      await Promise.all(clients.map((client) => client.connect()));
    }
  }
}

interface Node {
  readonly repository: RedisSessionRepository;
  readonly sweeper: SessionExpirationSweeper;
  readonly older: OlderSessionSweeper;
}

function nodeOf(
  { request, background }: Connections,
  partitions: SessionPartitions,
  options: RedisRepositoryOptions,
  commandTimeout: number,
): Node {
  const scripts = scriptsOn((client) => new SessionScripts(client, partitions, KEEPING_RULES));
  const connection = new RequestConnection(request, { commandTimeout });
  const epochs = new SessionEpochs();
  const ledger = new SessionLedger(connection, scripts, partitions, { commandTimeout: 1000 });
  const limiter = () => new BackgroundLimiter();
  const batches = { batchSize: BATCH_SIZE };
  return {
    repository: new RedisSessionRepository(connection, scripts, partitions, options, epochs, ledger),
    older: new OlderSessionSweeper(background, scripts(background), partitions, epochs, limiter(), new HandSignals()),
    sweeper: new SessionExpirationSweeper(background, scripts(background), partitions, batches, limiter()),
  };
}
