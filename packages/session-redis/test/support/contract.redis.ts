import { once } from 'node:events';
import { JsonAttributeSerializer, type SessionEvent } from '@nest-session/core';
import { SteppableRedisServer } from '@nest-session/test-infrastructure';
import type { ContractStore } from '@nest-session/testing/contracts';
import { Redis } from 'ioredis';
import { RequestConnection } from '../../src/connection/request.connection.js';
import { SessionEventLoader } from '../../src/delivery/session-event.loader.js';
import { toStreamEntry } from '../../src/delivery/stream-entry.js';
import { OlderSessionSweeper } from '../../src/expiration/older-session.sweeper.js';
import { SessionExpirationSweeper } from '../../src/expiration/session-expiration.sweeper.js';
import type { SessionKeys } from '../../src/keys/session-keys.js';
import { SessionPartitions } from '../../src/keys/session-partitions.js';
import { SessionLedger } from '../../src/limits/session-ledger.js';
import { type RedisRepositoryOptions, RedisSessionRepository } from '../../src/repository/redis-session.repository.js';
import { SessionEpochs } from '../../src/repository/session-epochs.js';
import { SessionScripts } from '../../src/scripts/session/session.scripts.js';
import { BackgroundLimiter } from '../../src/timing/background.limiter.js';
import { KEEPING_RULES, MINUTE } from './store.fixture.js';

const BATCH_SIZE = 100;

/** A Redis whose clock stands still, and stores in it, each in a namespace of its own and with two nodes. */
export class ContractRedis {
  #stores = 0;

  private constructor(
    private readonly server: SteppableRedisServer,
    private readonly clients: readonly [Redis, Redis],
  ) {}

  static async open(): Promise<ContractRedis> {
    const server = await SteppableRedisServer.start();
    await server.stopClock();
    const clients = [new Redis(server.url), new Redis(server.url)] as const;
    // Each store has its listeners on them.
    for (const client of clients) client.setMaxListeners(0);
    return new ContractRedis(server, clients);
  }

  store(options: RedisRepositoryOptions, count: number): ContractStore {
    const partitions = new SessionPartitions(`store-${++this.#stores}`, count);
    const [one, two] = this.clients.map((client) => nodeOf(client, partitions, options)) as [Node, Node];
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
    for (const client of this.clients) client.disconnect();
    await this.server.stop();
  }

  async #eventsOf(partitions: SessionPartitions, options: RedisRepositoryOptions): Promise<SessionEvent[]> {
    const events = await Promise.all(partitions.all.map((partition) => this.#eventsIn(partition, options)));
    return events.flat().toSorted((a, b) => a.at - b.at);
  }

  async #eventsIn(partition: SessionKeys, { encryption }: RedisRepositoryOptions): Promise<SessionEvent[]> {
    const [client] = this.clients;
    const loader = new SessionEventLoader(client, { serializer: new JsonAttributeSerializer(), encryption });
    const replies = await client.xrange(partition.events, '-', '+');
    const events = await Promise.all(replies.map((reply) => loader.load(toStreamEntry(partition, reply))));
    return events.filter((event) => event !== undefined);
  }

  async #withoutConnection(step: () => Promise<void>): Promise<void> {
    const ended = this.clients.map((client) => once(client, 'end'));
    for (const client of this.clients) client.disconnect();
    await Promise.all(ended);
    try {
      await step();
    } finally {
      await Promise.all(this.clients.map((client) => client.connect()));
    }
  }
}

interface Node {
  readonly repository: RedisSessionRepository;
  readonly sweeper: SessionExpirationSweeper;
  readonly older: OlderSessionSweeper;
}

function nodeOf(client: Redis, partitions: SessionPartitions, options: RedisRepositoryOptions): Node {
  const scripts = new SessionScripts(client, partitions, KEEPING_RULES);
  const connection = new RequestConnection(client, { commandTimeout: 10 * MINUTE });
  const epochs = new SessionEpochs();
  const ledger = new SessionLedger(connection, client, scripts, partitions, { commandTimeout: 1000 });
  return {
    repository: new RedisSessionRepository(connection, scripts, partitions, options, epochs, ledger),
    older: new OlderSessionSweeper(client, scripts, partitions, epochs, new BackgroundLimiter()),
    sweeper: new SessionExpirationSweeper(
      client,
      scripts,
      partitions,
      { batchSize: BATCH_SIZE },
      new BackgroundLimiter(),
    ),
  };
}
