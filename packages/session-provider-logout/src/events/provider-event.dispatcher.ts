import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { discoverMethods, HandlerQueue } from '@nest-session/core/internal';
import { handledNames } from './on-provider-event.decorator.js';
import type { ProviderEvent } from './provider-event.js';

interface Handler {
  readonly names: readonly string[];
  readonly queue: HandlerQueue<ProviderEvent>;
}

@Injectable()
export class ProviderEventDispatcher implements OnModuleInit, OnApplicationShutdown {
  readonly #handlers: Handler[] = [];

  constructor(
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(MetadataScanner) private readonly scanner: MetadataScanner,
  ) {}

  /** @throws InvalidSessionOptionsError for a method of a request-scoped or transient class. Called by Nest. */
  onModuleInit(): void {
    for (const { method, bind } of discoverMethods(this.discovery, this.scanner, 'ProviderLogoutModule')) {
      const names = handledNames(method);
      if (!names) continue;
      this.#handlers.push({ names, queue: new HandlerQueue(bind('@OnProviderEvent')) });
    }
  }

  /** Waits for the handlers. Called by Nest. */
  async onApplicationShutdown(): Promise<void> {
    await Promise.all(this.#handlers.map(({ queue }) => queue.idle()));
  }

  hear(event: ProviderEvent): void {
    for (const { names, queue } of this.#handlers)
      if (names.length === 0 || names.includes(event.name)) queue.hear(event);
  }
}
