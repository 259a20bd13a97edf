import { Inject, Injectable } from '@nestjs/common';
import { VERSION } from '../configuration/version.js';
import {
  CONNECTION_OPTIONS,
  type ConnectionOptions,
  REDIS_CONNECTIONS,
  type RedisConnections,
} from '../connection/redis-connections.js';
import { shownAddress } from '../connection/shown-address.js';
import { shownKind, shownServer } from '../connection/shown-server.js';
import { DELIVERY_OPTIONS } from '../delivery/delivery.tokens.js';
import type { DeliveryOptions } from '../delivery/event-rules.js';
import { logger } from '../logging/redis-session.logger.js';
import { Partitions, shownContent } from '../partitions/partitions.js';
import type { BackgroundService } from '../timing/background-service.js';
import { settledWithin } from '../timing/settled-within.js';

// Milliseconds that the line waits for the version of Redis.
const PATIENCE = 2000;

/** Says in one line of the log what a module keeps where, as soon as Redis has told its version. */
@Injectable()
export class StoreStartLog implements BackgroundService {
  readonly #hurry = new AbortController();
  #told: Promise<void> | undefined;

  constructor(
    @Inject(CONNECTION_OPTIONS) private readonly options: ConnectionOptions,
    @Inject(DELIVERY_OPTIONS) private readonly delivery: Pick<DeliveryOptions, 'events'>,
    @Inject(Partitions) private readonly partitions: Partitions,
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
    const { namespace, count, owner } = this.partitions;
    const { events } = this.delivery;
    let server: string | undefined;
    const hurry = new Promise((resolve) => this.#hurry.signal.addEventListener('abort', resolve));
    const asked = shownServer(background).then((shown) => (server = shown));
    await settledWithin(PATIENCE, Promise.race([hurry, asked]));
    logger.log(
      `nest-session ${VERSION} keeps ${shownContent(owner.holds)} in ${server ?? 'Redis of unknown version'}, ${shownKind(background)}: ` +
        `${shownAddress(this.options.connection)}; namespace ${JSON.stringify(namespace)}; partitions ${count}; ` +
        `group ${JSON.stringify(events.group)}${events.consume ? '' : ' (not handled here)'}`,
    );
  }
}
