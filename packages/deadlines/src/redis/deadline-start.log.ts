import { Inject, Injectable } from '@nestjs/common';
import {
  type BackgroundService,
  logger,
  REDIS_CONNECTIONS,
  type RedisConnections,
  settledWithin,
  shownAddress,
  shownKind,
  shownServer,
} from '@nest-session/redis-events/internal';
import { VERSION } from '@nest-session/redis/internal';
import { REDIS_DEADLINE_OPTIONS, type ResolvedRedisDeadlineOptions } from './redis-deadline.options.js';

// Milliseconds that the line waits for the version of Redis.
const PATIENCE = 2000;

/** Says in one line of the log where deadlines are kept, as soon as Redis has told its version. */
@Injectable()
export class DeadlineStartLog implements BackgroundService {
  readonly #hurry = new AbortController();
  #told: Promise<void> | undefined;

  constructor(
    @Inject(REDIS_DEADLINE_OPTIONS) private readonly options: ResolvedRedisDeadlineOptions,
    @Inject(REDIS_CONNECTIONS) private readonly connections: RedisConnections,
  ) {}

  start(): void {
    this.#told ??= this.#tell();
  }

  /** A line that still waits says what is known. */
  async stop(): Promise<void> {
    this.#hurry.abort();
    await this.#told;
  }

  async #tell(): Promise<void> {
    const { background } = this.connections;
    const { connection, namespace, partitions, events } = this.options;
    let server: string | undefined;
    const hurry = new Promise((resolve) => this.#hurry.signal.addEventListener('abort', resolve));
    const asked = shownServer(background).then((shown) => (server = shown));
    await settledWithin(PATIENCE, Promise.race([hurry, asked]));
    logger.log(
      `nest-session ${VERSION} keeps deadlines in ${server ?? 'Redis of unknown version'}, ${shownKind(background)}: ${shownAddress(connection)}; ` +
        `namespace ${JSON.stringify(namespace)}; partitions ${partitions}; group ${JSON.stringify(events.group)}` +
        (events.consume ? '' : ' (not handled here)'),
    );
  }
}
