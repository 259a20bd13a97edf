import { Inject, Injectable } from '@nestjs/common';
import { SessionStoreError } from '@nest-session/core';
import type { Redis } from 'ioredis';
import { logger } from '../logging/redis-session.logger.js';
import { Partitions } from '../partitions/partitions.js';
import type { BackgroundService } from '../timing/background-service.js';
import { settledWithin } from '../timing/settled-within.js';
import { checkStore } from './check-store.js';
import { LivingInstances } from './living-instances.js';
import {
  CONNECTION_OPTIONS,
  type ConnectionOptions,
  REDIS_CONNECTIONS,
  type RedisConnections,
} from './redis-connections.js';
import { isAnswer } from './reply.errors.js';
import { RequestConnection } from './request.connection.js';

// Milliseconds that a start waits for a Redis that it requires.
const LONGEST_START = 10_000;

/** Connects for requests and background work, and checks that this version can use the data in Redis. */
@Injectable()
export class StoreConnections implements BackgroundService {
  constructor(
    @Inject(REDIS_CONNECTIONS) private readonly connections: RedisConnections,
    @Inject(CONNECTION_OPTIONS) private readonly options: ConnectionOptions,
    @Inject(RequestConnection) private readonly requests: RequestConnection,
    @Inject(Partitions) private readonly partitions: Partitions,
    @Inject(LivingInstances) private readonly instances: LivingInstances,
  ) {}

  /** Without Redis, resolves after `commandTimeout`; with the option `requireAtStart`, rejects. */
  async start(): Promise<void> {
    const { background } = this.connections;
    background.connect().catch(() => undefined);
    await this.#connect();
    if (await this.#isChecked()) return;
    if (background.status === 'ready') void this.#checkLate();
    else background.once('ready', () => void this.#checkLate());
  }

  /** Resolves when Redis has replied to all that was sent. */
  async stop(): Promise<void> {
    const { request, writes, background } = this.connections;
    await Promise.all([...new Set([...request.all, ...writes.all, background])].map(quit));
  }

  async #connect(): Promise<void> {
    const { request, writes } = this.connections;
    const connected = Promise.all([...new Set([request, writes])].map((nodes) => nodes.connect()));
    if (this.options.requireAtStart) {
      const refuse = (cause?: unknown): never => {
        throw new SessionStoreError('Redis cannot be reached, and option `requireAtStart` is set', { cause });
      };
      // A Cluster and Sentinels are asked again and again.
      if (!(await settledWithin(LONGEST_START, connected))) refuse();
      await connected.catch(refuse);
      return;
    }
    // On failure, OutageLog logs the reason and ioredis retries.
    await settledWithin(this.options.commandTimeout, connected);
  }

  /** False when Redis cannot be reached, or does not reply within `commandTimeout`. */
  async #isChecked(): Promise<boolean> {
    if (this.connections.request.of(undefined)?.status !== 'ready') return false;
    try {
      // In this order: whoever moves the data to other partitions records that before he looks for instances.
      await this.instances.sign().catch(unlessAnswered);
      await checkStore(this.requests, this.partitions);
      return true;
    } catch (cause) {
      if (!(cause instanceof SessionStoreError) || isAnswer(cause.cause)) {
        await this.instances.leave().catch(() => undefined);
        throw cause;
      }
      if (!this.options.requireAtStart) return false;
      throw new SessionStoreError('Redis does not reply, and option `requireAtStart` is set', { cause });
    }
  }

  async #checkLate(): Promise<void> {
    // The application already runs, so an error can only be logged.
    const { background } = this.connections;
    await this.instances.sign().catch(() => undefined);
    await checkStore({ run: (command) => command(background) }, this.partitions).catch((error: unknown) =>
      logger.error(String(error)),
    );
  }
}

/** Without a sign of life, as on a Redis that is out of memory, an instance starts all the same. */
function unlessAnswered(error: unknown): void {
  if (!(error instanceof SessionStoreError) || !isAnswer(error.cause)) throw error;
}

/** Waits for the replies to what was sent; without a connection there are none. */
async function quit(client: Redis): Promise<void> {
  if (client.status === 'ready') await client.quit();
}
