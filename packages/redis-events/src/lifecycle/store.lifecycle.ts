import type {
  BeforeApplicationShutdown,
  FactoryProvider,
  OnApplicationBootstrap,
  OnApplicationShutdown,
  Type,
} from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
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

type Service = Type<BackgroundService>;

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

/**
 * Starts the background work when the application is complete, and ends it in the order that loses nothing: it begins
 * nothing new, then Nest closes the server, then requests and handlers finish, then connections close.
 */
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
    this.begun();
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

  protected begun(): void {}

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

export function storeLifecycle(services: ServicesOfStore): FactoryProvider<StoreLifecycle> {
  return {
    provide: StoreLifecycle,
    inject: [ModuleRef, REDIS_CONNECTIONS, CONNECTION_OPTIONS],
    useFactory: (providers: ModuleRef, connections: RedisConnections, { commandTimeout }: ConnectionOptions) =>
      new StoreLifecycle(providers, connections, services, commandTimeout),
  };
}
