import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type Type,
} from '@nestjs/common';
import type { ModuleRef } from '@nestjs/core';
import { type BackgroundService, settledWithin } from '../timing/background-service.js';
import { closeConnection } from '../connection/close-connection.js';
import {
  closeConnections,
  CONNECTION_OPTIONS,
  type ConnectionOptions,
  endSharing,
  REDIS_CONNECTIONS,
  type RedisConnections,
} from '../connection/redis-connections.js';
import { shownAddress, shownKind, shownServer } from '../connection/shown-server.js';
import { VERSION } from '../configuration/version.js';
import { DELIVERY_OPTIONS, type DeliveryOptions } from '../configuration/event-rules.js';
import { logger } from '../logging/failure.log.js';
import { shownContent } from '../partitions/namespace.js';
import { Partitions } from '../partitions/partitions.js';

export type Service = Type<BackgroundService>;

/** The classes of providers that run in the background, in the order in which they begin. */
export interface ServicesOfStore {
  /** Everything else needs these. They end last, one after the other. */
  readonly foundation: readonly Service[];
  /** These find work. They end when the shutdown begins, before Nest closes the server. */
  readonly sources: readonly Service[];
  /** This ends at the same time. It waits for handlers of the application, however long they take. */
  readonly listeners: readonly Service[];
  /** These begin no event more when the shutdown begins, and end after the last handler and the requests in flight. */
  readonly handling: readonly Service[];
}

// Milliseconds that a shutdown waits for background work.
const PATIENCE = 5000;

/** Ends the background work in the order that loses nothing: new work, server, requests and handlers, connections. */
export class StoreLifecycle implements OnApplicationBootstrap, BeforeApplicationShutdown, OnApplicationShutdown {
  #handled: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly providers: ModuleRef,
    private readonly connections: RedisConnections,
    private readonly services: ServicesOfStore,
    private readonly patience: number,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    const { foundation, sources, listeners, handling } = this.services;
    try {
      for (const service of this.#all([...foundation, ...sources, ...listeners])) await service.start();
    } catch (error) {
      // Nest runs no shutdown hooks after a failed start, and an open connection keeps the process alive.
      for (const each of Object.values(this.connections)) if (each) endSharing(each);
      void closeConnections(this.connections);
      throw error;
    }
    const started = this.#all(handling).map(async (service) => service.start());
    await settledWithin(this.patience, Promise.all(started));
  }

  async beforeApplicationShutdown(): Promise<void> {
    const { background } = this.connections;
    // Background work would wait for Redis, and the shutdown for the work.
    if (background.status !== 'ready') void closeConnection(background);
    const { sources, listeners, handling } = this.services;
    this.#handled = this.#stop(handling);
    await Promise.all([this.#finish(this.#stop(sources)), this.#stop(listeners)]);
  }

  async onApplicationShutdown(): Promise<void> {
    // The dispatcher has waited for the handlers. This waits until Redis knows their results.
    await this.#finish(this.#handled);
    for (const service of this.services.foundation.toReversed()) await this.#finish(this.#stop([service]));
    void closeConnections(this.connections);
  }

  #all(services: readonly Service[]): BackgroundService[] {
    return services.map((service) => this.providers.get<BackgroundService>(service));
  }

  #stop(services: readonly Service[]): Promise<unknown> {
    return Promise.all(this.#all(services).map(async (service) => service.stop()));
  }

  /** Waits for background work. Where Redis does not reply in time, it will reply to nothing: closes. */
  async #finish(work: Promise<unknown>): Promise<void> {
    if (!(await settledWithin(PATIENCE, work))) void closeConnection(this.connections.background);
  }
}

// Milliseconds that the line waits for what it says. The application does not wait for the line.
const LINE_PATIENCE = 2000;

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

  protected abstract tell(server: string): void;

  /** What the line waits for besides. */
  protected async ask(): Promise<void> {}

  async #tell(): Promise<void> {
    const { background } = this.connections;
    const { signal } = this.#hurry;
    const hurry = new Promise((resolve) => signal.addEventListener('abort', resolve));
    const server = shownServer(background).then((shown) => (this.#server = shown));
    const asked = Promise.all([server, this.ask()]);
    if (!signal.aborted) await settledWithin(LINE_PATIENCE, Promise.race([hurry, asked]));
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
