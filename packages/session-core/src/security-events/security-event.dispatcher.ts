import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { type BoundMethod, discoverMethods } from '../discovery/discover-methods.js';
import { HandlerQueue } from '../events/handler.queue.js';
import { handledKinds, isBesideTheLog } from './on-security-event.decorator.js';
import {
  type SecurityEvent,
  type SecurityEventKind,
  type SecurityEventListener,
  SecurityEvents,
} from './security-events.js';

@Injectable()
export class SecurityEventDispatcher implements SecurityEventListener, OnModuleInit, OnApplicationShutdown {
  readonly #handlers: SecurityEventHandler[] = [];
  readonly #insteadOfLog: SecurityEventHandler[] = [];

  constructor(
    @Inject(SecurityEvents) private readonly events: SecurityEvents,
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(MetadataScanner) private readonly scanner: MetadataScanner,
  ) {}

  /** @throws InvalidSessionOptionsError for a method of a request-scoped or transient class. Called by Nest. */
  onModuleInit(): void {
    for (const { method, bind } of discoverMethods(this.discovery, this.scanner)) {
      const kinds = handledKinds(method);
      if (!kinds) continue;
      const handler = new SecurityEventHandler(bind('@OnSecurityEvent'), new Set(kinds));
      this.#handlers.push(handler);
      if (!isBesideTheLog(method)) this.#insteadOfLog.push(handler);
    }
    if (this.#handlers.length > 0) this.events.listen(this);
  }

  /** Delivers the waiting events, and waits for the handlers. Called by Nest. */
  async onApplicationShutdown(): Promise<void> {
    this.events.listen(undefined);
    await Promise.all(this.#handlers.map((handler) => handler.idle()));
  }

  listensTo(kind: SecurityEventKind): boolean {
    return this.#handlers.some((handler) => handler.wants(kind));
  }

  replacesLog(kind: SecurityEventKind): boolean {
    return this.#insteadOfLog.some((handler) => handler.wants(kind));
  }

  hear(event: SecurityEvent): void {
    for (const handler of this.#handlers) if (handler.wants(event.kind)) handler.hear(event);
  }
}

/** Calls a method with `@OnSecurityEvent`. */
export class SecurityEventHandler extends HandlerQueue<SecurityEvent> {
  /**
   * @param kinds the kinds that the method handles. Empty means all
   * @param patience after so many milliseconds, a call that has not finished is logged
   */
  constructor(
    method: Pick<BoundMethod, 'name' | 'call'>,
    private readonly kinds: ReadonlySet<SecurityEventKind>,
    patience?: number,
  ) {
    super(method, patience);
  }

  wants(kind: SecurityEventKind): boolean {
    return this.kinds.size === 0 || this.kinds.has(kind);
  }
}
