import { Inject, Injectable } from '@nestjs/common';
import { SessionStoreError } from '@nest-session/core';
import { shownError, shownText } from '@nest-session/core/internal';
import { PollingLoop } from '@nest-session/core/store';
import type { Cluster, Redis } from 'ioredis';
import { FailureLog, logger } from '../logging/failure.log.js';
import { adviceFor } from '../logging/advice.js';
import { shownContent } from '../partitions/namespace.js';
import { Partitions } from '../partitions/partitions.js';
import { type BackgroundService, settledWithin } from '../timing/background-service.js';
import { checkServer, checkStore, type Connection } from './store-format.js';
import { LivingInstances } from './living-instances.js';
import { type LoginSource, loginSourceOf, renewLogins } from '../connection/login.js';
import { OutageLog } from '../connection/outage.log.js';
import {
  CONNECTION_OPTIONS,
  type ConnectionOptions,
  isShared,
  REDIS_CONNECTIONS,
  type RedisConnections,
} from '../connection/redis-connections.js';
import { isAnswer, untilSound } from '../connection/server-faults.js';
import { RequestConnection } from '../connection/request.connection.js';
import { isCluster, nodeWith } from '../connection/node-with.js';
import { infoOf } from '../connection/shown-server.js';

// Milliseconds that a start waits for a Redis that it requires: longer than the `connectTimeout` of ioredis.
const LONGEST_START = 11_000;

/** Connects for requests and background work, and checks that this version can use the data in Redis. */
@Injectable()
export class StoreConnections implements BackgroundService {
  readonly #eviction: EvictionCheck;
  readonly #upkeep: ConnectionUpkeep;
  readonly #stopping = new AbortController();
  #hasEntered = false;

  constructor(
    @Inject(REDIS_CONNECTIONS) private readonly connections: RedisConnections,
    @Inject(CONNECTION_OPTIONS) private readonly options: ConnectionOptions,
    @Inject(RequestConnection) private readonly requests: RequestConnection,
    @Inject(Partitions) private readonly partitions: Partitions,
    @Inject(LivingInstances) private readonly instances: LivingInstances,
    @Inject(OutageLog) private readonly outage: OutageLog,
  ) {
    this.#eviction = new EvictionCheck(partitions);
    this.#upkeep = new ConnectionUpkeep(connections, loginSourceOf(options.connection));
  }

  /** Without Redis, resolves after `commandTimeout`; with the option `requireAtStart`, rejects. */
  async start(): Promise<void> {
    const { background, request } = this.connections;
    background.connect().catch(() => undefined);
    await this.#connect();
    const isChecked = await this.#isChecked();
    this.#upkeep.start();
    request.onOpen((client) => client.on('ready', () => this.#lookAgain()));
    // Then it has lost the record of the partitions as well, and another instance could begin with a different number.
    this.instances.onForgotten(() => this.#checkLate());
    if (isChecked) return;
    if (background.status === 'ready') void this.#checkLate();
    else background.once('ready', () => void this.#checkLate());
  }

  /** Resolves when Redis has replied to all that was sent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#upkeep.stop();
    const { request, writes, background } = this.connections;
    const own = [...new Set([request, writes])].filter((nodes) => !isShared(nodes)).flatMap((nodes) => [...nodes.all]);
    if (!isShared(background)) own.push(background);
    // Without a connection there are no replies.
    await Promise.all(own.map(async (client) => client.status === 'ready' && client.quit()));
  }

  async #connect(): Promise<void> {
    const { request, writes } = this.connections;
    const connected = Promise.all([...new Set([request, writes])].map((nodes) => nodes.connect()));
    if (this.options.requireAtStart) return this.#require(connected);
    // On failure, OutageLog logs the reason and ioredis retries.
    await settledWithin(this.options.commandTimeout, connected);
  }

  async #require(connected: Promise<unknown>): Promise<void> {
    // A Cluster and Sentinels are asked again and again.
    const hasEnded = await settledWithin(LONGEST_START, connected);
    const { reason } = this.outage;
    if (!hasEnded) refuse('cannot be reached', reason ?? new Error(`no connection within ${LONGEST_START} ms`));
    // ioredis itself rejects with `Connection is closed.`
    await connected.catch((error: unknown) => refuse('cannot be reached', reason ?? error));
  }

  /** False when Redis cannot be reached, or does not reply within `commandTimeout`. */
  async #isChecked(): Promise<boolean> {
    if (this.connections.request.of(undefined)?.status !== 'ready') return false;
    try {
      await this.#enter(this.requests, unlessAnswered);
      return true;
    } catch (cause) {
      if (!(cause instanceof SessionStoreError) || isAnswer(cause.cause)) {
        await this.instances.leave().catch(() => undefined);
        throw cause instanceof SessionStoreError ? refusal(cause, this.partitions.owner.module) : cause;
      }
      if (!this.options.requireAtStart) return false;
      return refuse('does not reply', cause);
    }
  }

  /** Redis may have come back with other settings or without its data, or be another one. */
  #lookAgain(): void {
    void this.#eviction.look(this.requests);
    if (this.#hasEntered) this.instances.runOnce().catch(() => undefined);
  }

  async #checkLate(): Promise<void> {
    // The application already runs, so an error can only be logged.
    const { background } = this.connections;
    const enter = () => this.#enter({ run: (command) => command(background) }, () => undefined);
    await untilSound(enter, this.#stopping.signal).catch((error: unknown) => {
      if (this.#stopping.signal.aborted) return;
      logger.error(`The check of the data in Redis failed: ${String(error)}${adviceFor(error)}`);
    });
  }

  async #enter(connection: Connection, unsigned: (error: unknown) => void): Promise<void> {
    if (!this.options.isGuest) {
      await checkServer(connection, this.partitions);
      // In this order, because a repartition records itself before it looks for instances.
      await this.instances.sign().catch(unsigned);
      await checkStore(connection, this.partitions);
      this.#hasEntered = true;
    }
    await this.#eviction.look(connection);
  }
}

function refuse(state: string, cause: unknown): never {
  throw new SessionStoreError(`Redis ${state}, and option \`requireAtStart\` is set: ${shownError(cause)}`, { cause });
}

/** Redis replies and does not allow this: waiting for it would not help. */
function refusal(cause: SessionStoreError, module: string): SessionStoreError {
  // The reason quotes the error of Redis. A chain of all three would print it three times.
  return new SessionStoreError(`${module} cannot start: ${cause.reason}`, { cause: cause.cause });
}

/** Where Redis allows no sign of life, an instance starts all the same. */
function unlessAnswered(error: unknown): void {
  if (!(error instanceof SessionStoreError) || !isAnswer(error.cause)) throw error;
}

const INTERVAL = 5000;
const RENEWAL = 60_000;

/** Asks for the time over connections that networks forget, and logs in again before a changed password is invalid. */
export class ConnectionUpkeep implements BackgroundService {
  readonly #sent = new WeakMap<Redis, number>();
  readonly #failures = new FailureLog(
    'The password of Redis could not be renewed, trying again',
    'The password of Redis can be renewed again',
  );
  readonly #looks = new PollingLoop('The upkeep of connections', INTERVAL, async () => this.look());
  #nextRenewal = performance.now() + RENEWAL;

  constructor(
    private readonly connections: RedisConnections,
    private readonly login: LoginSource | undefined,
  ) {}

  start(): void {
    this.#looks.start();
    // Nobody stops what has started when something else refuses the start.
    this.connections.background.once('end', () => this.stop());
  }

  stop(): void {
    void this.#looks.stop();
  }

  look(): void {
    for (const client of this.#clients()) {
      const { bytesWritten } = client.stream;
      if (this.#sent.get(client) === bytesWritten) client.time().catch(() => undefined);
      // Not what the question adds: it counts as use at the next look.
      this.#sent.set(client, bytesWritten);
    }
    if (performance.now() < this.#nextRenewal) return;
    this.#nextRenewal = performance.now() + RENEWAL;
    void this.renewLogins();
  }

  async renewLogins(): Promise<void> {
    if (!this.login) return;
    try {
      await renewLogins(this.login, this.#clients());
      this.#failures.succeeded();
    } catch (error) {
      this.#failures.failed(error);
    }
  }

  /** Not those that hear messages, which have heartbeats of their own. */
  *#clients(): Iterable<Redis> {
    const { request, writes, background, reader, broadcast } = this.connections;
    const ofBackground = isCluster(background) ? (background as Cluster).nodes() : [background];
    const all = new Set([...request.all, ...writes.all, ...ofBackground, reader, broadcast]);
    for (const client of all) if (client?.status === 'ready') yield client;
  }
}

/** No event comes of an eviction: nothing is left to record it. */
export class EvictionCheck {
  #told = '';

  constructor(private readonly partitions: Pick<Partitions, 'all' | 'owner'>) {}

  /** Warns once, until the policies have changed. Never rejects. */
  async look(connection: Connection): Promise<void> {
    const found = await nodeMemory(connection, this.partitions);
    const evicting = [...found].filter(([, { policy }]) => policy !== 'noeviction');
    const told = evicting
      .map(([{ options }, { policy }]) => {
        return found.size > 1 ? `${shownText(policy)} on ${options.host}:${options.port}` : shownText(policy);
      })
      .join(', ');
    if (told !== '' && told !== this.#told)
      logger.warn(
        `Redis may evict ${lossOf(this.partitions.owner.holds)}: its maxmemory-policy is ${told}. Set it to noeviction`,
      );
    this.#told = told;
  }
}

const CONSEQUENCES: Readonly<Record<string, string>> = {
  deadlines: 'which then never come',
  events: 'which then reach no group',
};

export function lossOf(holds: string): string {
  return `${shownContent(holds)}, ${CONSEQUENCES[holds] ?? 'which then end without an event'}`;
}

export interface NodeMemory {
  readonly policy: string;
  /** Whether it refuses every command that takes memory. */
  readonly isFull: boolean;
}

/** Asks by INFO, because CONFIG is forbidden more often. Leaves silent nodes out. Never rejects. */
export async function nodeMemory(
  connection: Connection,
  { all }: Pick<Partitions, 'all'>,
): Promise<ReadonlyMap<Redis, NodeMemory>> {
  const asked = new Map<Redis, Promise<NodeMemory | undefined>>();
  const found = new Map<Redis, NodeMemory>();
  const ask = async (client: Redis, key: string) => {
    const node = nodeWith(client, key);
    const reply = asked.get(node) ?? memoryOf(node);
    asked.set(node, reply);
    const memory = await reply;
    if (memory) found.set(node, memory);
  };
  const keys = all.map(({ prefix }) => prefix);
  await Promise.all(keys.map((key) => connection.run((client) => ask(client, key), key).catch(() => undefined)));
  return found;
}

async function memoryOf(node: Redis): Promise<NodeMemory | undefined> {
  const info = infoOf(await node.info('memory'));
  const policy = info.get('maxmemory_policy');
  const bytes = (name: string) => Number(info.get(name) ?? 0);
  const limit = bytes('maxmemory');
  // As Redis compares it. Under another policy, it evicts.
  const isOver = limit > 0 && bytes('used_memory') - bytes('mem_not_counted_for_evict') > limit;
  return policy === undefined ? undefined : { policy, isFull: isOver && policy === 'noeviction' };
}
