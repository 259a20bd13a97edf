import type { Cluster, Redis } from 'ioredis';
import { FailureLog } from '../logging/failure.log.js';
import type { BackgroundService } from '../timing/background-service.js';
import { type LoginSource, renewLogins } from './login.js';
import { isCluster } from './node-with.js';
import type { RedisConnections } from './redis-connections.js';

// Milliseconds between two looks. A connection is silent for twice as long at most.
const INTERVAL = 5000;
// Milliseconds.
const RENEWAL = 60_000;

/**
 * Keeps the connections usable that nobody uses for a while. Networks forget connections on which nothing is sent, and
 * the next request would wait in vain. Over those it asks for the time, which needs no right of its own; where no reply
 * comes, ioredis connects anew. Logs connections in again before a password that has changed is no longer valid.
 */
export class ConnectionUpkeep implements BackgroundService {
  /** What each connection had sent at the last look. */
  readonly #sent = new WeakMap<Redis, number>();
  readonly #failures = new FailureLog(
    'The password of Redis could not be renewed, trying again',
    'The password of Redis can be renewed again',
  );
  #timer: NodeJS.Timeout | undefined;
  #nextRenewal = performance.now() + RENEWAL;

  constructor(
    private readonly connections: RedisConnections,
    private readonly login: LoginSource | undefined,
  ) {}

  start(): void {
    this.#timer = setInterval(() => this.look(), INTERVAL).unref();
    // Nobody stops what has started when something else refuses the start.
    this.connections.background.once('end', () => this.stop());
  }

  stop(): void {
    clearInterval(this.#timer);
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

  /** Never rejects. */
  async renewLogins(): Promise<void> {
    if (!this.login) return;
    try {
      await renewLogins(this.login, this.#clients());
      this.#failures.succeeded();
    } catch (error) {
      this.#failures.failed(error);
    }
  }

  /** Those that are ready, but not those that hear messages, which have heartbeats of their own. */
  *#clients(): Iterable<Redis> {
    const { request, writes, background, reader, broadcast } = this.connections;
    const ofBackground = isCluster(background) ? (background as Cluster).nodes() : [background];
    const all = new Set([...request.all, ...writes.all, ...ofBackground, reader, broadcast]);
    for (const client of all) if (client?.status === 'ready') yield client;
  }
}
