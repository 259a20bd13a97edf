import { Inject, Injectable } from '@nestjs/common';
import {
  CONNECTION_OPTIONS,
  type ConnectionOptions,
  REDIS_CONNECTIONS,
  type RedisConnections,
} from '../connection/redis-connections.js';
import { shownAddress, shownKind, shownServer } from '../connection/shown-server.js';
import { type BackgroundService, settledWithin } from '../timing/background-service.js';
import { VERSION } from '../configuration/version.js';
import { DELIVERY_OPTIONS, type DeliveryOptions } from '../configuration/event-rules.js';
import { logger } from '../logging/failure.log.js';
import { Partitions, shownContent } from '../partitions/partitions.js';

// Milliseconds that the line waits for what it says. The application does not wait for the line.
const PATIENCE = 2000;

export abstract class StoreStartLog implements BackgroundService {
  readonly #hurry = new AbortController();
  #told: Promise<void> | undefined;
  #server: string | undefined;

  constructor(private readonly connections: RedisConnections) {}

  start(): void {
    this.#told ??= this.#tell();
  }

  /** A line that still waits says what is known. */
  async stop(): Promise<void> {
    this.#hurry.abort();
    await this.#told;
  }

  /** Says it. `server`: which Redis that is. */
  protected abstract tell(server: string): void;

  /** What the line waits for besides. */
  protected async ask(): Promise<void> {}

  async #tell(): Promise<void> {
    const { background } = this.connections;
    const { signal } = this.#hurry;
    const hurry = new Promise((resolve) => signal.addEventListener('abort', resolve));
    const server = shownServer(background).then((shown) => (this.#server = shown));
    const asked = Promise.all([server, this.ask()]);
    if (!signal.aborted) await settledWithin(PATIENCE, Promise.race([hurry, asked]));
    this.tell(`${this.#server ?? 'Redis of unknown version'}, ${shownKind(background)}`);
  }
}

@Injectable()
export class ContentStartLog extends StoreStartLog {
  constructor(
    @Inject(CONNECTION_OPTIONS) private readonly options: ConnectionOptions,
    @Inject(DELIVERY_OPTIONS) private readonly delivery: Pick<DeliveryOptions, 'events'>,
    @Inject(Partitions) private readonly partitions: Partitions,
    @Inject(REDIS_CONNECTIONS) connections: RedisConnections,
  ) {
    super(connections);
  }

  protected tell(server: string): void {
    const { namespace, count, owner } = this.partitions;
    const { events } = this.delivery;
    logger.log(
      `nest-session ${VERSION} keeps ${shownContent(owner.holds)} in ${server}: ` +
        `${shownAddress(this.options.connection)}; namespace ${JSON.stringify(namespace)}; partitions ${count}; ` +
        `group ${JSON.stringify(events.group)}${events.consume ? '' : ' (not handled here)'}`,
    );
  }
}
