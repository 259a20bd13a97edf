import { Inject, Injectable, Optional } from '@nestjs/common';
import { type ResolvedSessionOptions, SESSION_OPTIONS } from '@nest-session/core/store';
import {
  type BackgroundService,
  logger,
  REDIS_CONNECTIONS,
  type RedisConnections,
  settledWithin,
  shownAddress,
  shownKind,
  shownServer,
  VERSION,
} from '@nest-session/redis-events/internal';
import type { ResolvedRedisSessionOptions } from './configuration/redis-session.options.js';
import { REDIS_SESSION_OPTIONS } from './configuration/redis-session.tokens.js';
import { startDetails, startFacts } from './configuration/start-facts.js';
import { ExpiredSessionListener } from './expiration/expired-session.listener.js';

// Milliseconds that the line waits for what it says. The application does not wait for the line.
const PATIENCE = 2000;

/** Says in one line of the log what runs, as soon as Redis has told its version and whether it announces sessions. */
@Injectable()
export class StartLog implements BackgroundService {
  readonly #hurry = new AbortController();
  #told: Promise<void> | undefined;
  #server: string | undefined;
  #notifications: string;

  constructor(
    @Inject(REDIS_SESSION_OPTIONS) private readonly options: ResolvedRedisSessionOptions,
    // Optional, so that the error names the missing module.
    @Optional() @Inject(SESSION_OPTIONS) private readonly sessions: ResolvedSessionOptions,
    @Inject(REDIS_CONNECTIONS) private readonly connections: RedisConnections,
    @Inject(ExpiredSessionListener) private readonly expired: Pick<ExpiredSessionListener, 'firstState'>,
  ) {
    this.#notifications = options.notifications === 'off' ? 'off' : 'connecting';
  }

  start(): void {
    this.#told ??= this.#tell();
  }

  /** A line that still waits says what is known. */
  async stop(): Promise<void> {
    this.#hurry.abort();
    await this.#told;
  }

  async #tell(): Promise<void> {
    const { signal } = this.#hurry;
    const hurry = new Promise((resolve) => signal.addEventListener('abort', resolve));
    if (!signal.aborted) await settledWithin(PATIENCE, Promise.race([hurry, this.#ask()]));
    const { options, sessions, connections } = this;
    const server = `${this.#server ?? 'Redis of unknown version'}, ${shownKind(connections.background)}`;
    const facts = startFacts(options, sessions, this.#notifications);
    const ofSpring =
      options.spring === 'read' ? 'reads the sessions of Spring Session' : 'shares sessions with Spring Session';
    const what = options.spring ? ofSpring : 'keeps sessions';
    logger.log(`nest-session ${VERSION} ${what} in ${server}: ${shownAddress(options.connection)}; ${facts}`);
    logger.verbose(`Options that are in effect, on Node.js ${process.version}: ${startDetails(options, sessions)}`);
  }

  async #ask(): Promise<void> {
    const server = shownServer(this.connections.background).then((shown) => (this.#server = shown));
    if (this.options.notifications === 'auto' && !this.options.spring)
      this.#notifications = await this.expired.firstState;
    await server;
  }
}
