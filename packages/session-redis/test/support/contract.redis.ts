import { once } from 'node:events';
import type { IndexedSessionRepository, SessionEvent } from '@nest-session/core';
import { SteppableRedisCluster, SteppableRedisServer } from '@nest-session/test-infrastructure';
import type { ContractStore } from '@nest-session/testing/contracts';
import { Redis } from 'ioredis';
import type { ExpirationStoreName } from '../../src/configuration/expirations.options.js';
import { resolveRedisSessionOptions } from '../../src/configuration/redis-session.options.js';
import {
  closeConnections,
  createConnections,
  type RedisConnections,
} from '../../../redis-events/src/connection/redis-connections.js';
import { openRedis } from '../../../redis-events/src/connection/open-redis.js';
import { RequestConnection } from '../../../redis-events/src/connection/request.connection.js';
import { SingleNode } from '../../../redis-events/src/connection/redis-nodes.js';
import { EventLoader } from '../../../redis-events/src/delivery/event-producer.js';
import { toStreamEntry } from '../../../redis-events/src/scripts/stream/stream-entry.js';
import { OlderSessionSweeper, SessionEpochs } from '../../src/repository/session-epochs.js';
import { SessionExpirationSweeper } from '../../src/expiration/session-expiration.sweeper.js';
import type { SessionKeys } from '../../src/keys/session-keys.js';
import { SessionPartitions } from '../../src/keys/session-partitions.js';
import { LimitAcrossPartitions } from '../../src/limits/limit-across-partitions.js';
import { type RedisRepositoryOptions, RedisSessionRepository } from '../../src/repository/redis-session.repository.js';
import { scriptsOn } from '../../../redis-events/src/scripts/define-scripts.js';
import { SessionScripts } from '../../src/scripts/session/session.scripts.js';
import { BackgroundLimiter } from '../../../redis-events/src/timing/background.limiter.js';
import type { SessionEventProducer } from '../../src/session-events/session-event-producer.js';
import { KEEPING_RULES, MINUTE } from './store.fixture.js';
import { sessionEvents } from './event-scripts.js';

const BATCH_SIZE = 100;
const NAME = 'contract';

/**
 * What instrumentations of ioredis may see: hidden arguments, scripts and their hashes, and those of reading the events
 * stream.
 */
const HARMLESS = /^(\?|[0-9a-f]{40}|#!lua[^]*|\(?\d+(-\d+)?|[-+]|store-\d+:(\{[\d-]+\}:|nest:)?events)$/;

/** The connections of one node of an application. */
type Connections = Pick<RedisConnections, 'request' | 'background'>;

/** What a store has of a node. */
interface ContractNode {
  readonly connection: RequestConnection;
  readonly background: Redis;
}

/** A store, with a repository on each node. */
interface OtherStore {
  readonly repositories: readonly [IndexedSessionRepository, IndexedSessionRepository];
  /** The only one. */
  readonly partition: SessionKeys;
  readonly producer: SessionEventProducer;
  readonly reportExpired: () => Promise<unknown>;
}

// A node of a Cluster that cannot be reached is waited for.
const CLUSTER_TIMEOUT = 5000;

/**
 * A Redis, or a Redis Cluster, whose clock stands still, and stores in it, each in a namespace of its own and with two
 * nodes.
 */
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
    const address = { url: server.url, tls: undefined };
    const seen = seenArguments();
    // As the connections of the library have it: replies have one form.
    const rules = { connectionName: NAME, protocol: 2 } as const;
    const clients = [openRedis(address, rules), openRedis(address, rules)] as const;
    // Each store has its listeners on them.
    for (const client of clients) client.setMaxListeners(0);
    const [one, two] = clients.map((client) => ({ request: new SingleNode(client), background: client }));
    const close = async () => {
      clients.forEach((client) => client.disconnect());
      const shown = seen();
      expect(shown).toContain('?');
      expect(shown.filter((argument) => !HARMLESS.test(argument))).toEqual([]);
    };
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

  /** `expirations`: of each node. */
  store(
    options: RedisRepositoryOptions,
    count: number,
    expirations: readonly [ExpirationStoreName, ExpirationStoreName] = ['buckets', 'buckets'],
  ): ContractStore {
    const namespace = `store-${++this.#stores}`;
    const partitions = new SessionPartitions(namespace, count);
    const [one, two] = this.nodes.map((each, i) =>
      nodeOf(each, partitions, options, { commandTimeout: this.commandTimeout, store: expirations[i]! }),
    ) as [Node, Node];
    // The minute of a session's end passes up to a minute later.
    const ahead = expirations.includes('buckets') ? MINUTE : 0;
    let sweeps = 0;
    return {
      repository: one.repository,
      other: two.repository,
      advance: (milliseconds) => this.server.stepClock(milliseconds),
      reportExpired: () =>
        Promise.all([
          (sweeps++ % 2 === 0 ? one : two).sweeper.runOnce({ ahead }),
          one.older.runOnce(),
          two.older.runOnce(),
        ]),
      events: () => this.#eventsOf(partitions, options),
      outage: (step) => this.#withoutConnection(step),
    };
  }

  /** A store of another form. `make`: makes it, in a namespace of its own. */
  storeOf(make: (namespace: string, nodes: readonly [ContractNode, ContractNode]) => OtherStore): ContractStore {
    const [one, two] = this.nodes.map(({ request, background }) => ({
      connection: new RequestConnection(request, { commandTimeout: this.commandTimeout }),
      background,
    })) as [ContractNode, ContractNode];
    const { repositories, partition, producer, reportExpired } = make(`store-${++this.#stores}`, [one, two]);
    return {
      repository: repositories[0],
      other: repositories[1],
      advance: (milliseconds) => this.server.stepClock(milliseconds),
      reportExpired,
      events: () => this.#loaded(partition, producer),
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

  #eventsIn(partition: SessionKeys, { encryption }: RedisRepositoryOptions): Promise<SessionEvent[]> {
    return this.#loaded(partition, sessionEvents(encryption));
  }

  async #loaded(partition: SessionKeys, producer: SessionEventProducer): Promise<SessionEvent[]> {
    const [{ background: client }] = this.nodes;
    const loader = new EventLoader(client, producer);
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

/** Watches what clients that are opened from now on show of their commands, until it is asked for that. */
function seenArguments(): () => string[] {
  const seen = new Set<string>();
  const { sendCommand } = Redis.prototype;
  Redis.prototype.sendCommand = function (this: Redis, command, stream) {
    if (this.options.connectionName === NAME && command.name !== 'client')
      for (const argument of command.args) seen.add(String(argument));
    return sendCommand.call(this, command, stream);
  };
  return () => {
    Redis.prototype.sendCommand = sendCommand;
    return [...seen];
  };
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
  { commandTimeout, store }: { readonly commandTimeout: number; readonly store: ExpirationStoreName },
): Node {
  const scripts = scriptsOn((client) => new SessionScripts(client, partitions, { ...KEEPING_RULES, store }));
  const connection = new RequestConnection(request, { commandTimeout });
  const epochs = new SessionEpochs();
  const ledger = new LimitAcrossPartitions(connection, scripts, partitions, { commandTimeout: 1000 });
  const limiter = () => new BackgroundLimiter();
  const batches = { batchSize: BATCH_SIZE };
  return {
    repository: new RedisSessionRepository(connection, scripts, partitions, options, epochs, ledger),
    older: new OlderSessionSweeper(background, scripts(background), partitions, epochs, limiter()),
    sweeper: new SessionExpirationSweeper(background, scripts(background), partitions, batches, limiter()),
  };
}
