import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { type BoundMethod, discoverMethods } from '../discovery/discover-methods.js';
import { logger } from '../logging/session.logger.js';
import { shownStack } from '../logging/shown-error.js';
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

const MOST_RUNNING = 16;
const MOST_WAITING = 1000;
const PATIENCE = 30_000;
/** How long a shutdown waits, in milliseconds: as long as that of the session events by default. */
const SHUTDOWN_PATIENCE = 10_000;

/** Calls a method with `@OnSecurityEvent`. A slow or failing method delays and harms nothing else. */
export class SecurityEventHandler {
  readonly #waiting: SecurityEvent[] = [];
  readonly #logged = new Set<string>();
  readonly #running = new Set<Promise<void>>();

  /**
   * @param kinds the kinds that the method handles. Empty means all
   * @param patience after so many milliseconds, a call that has not finished is logged
   */
  constructor(
    private readonly method: Pick<BoundMethod, 'name' | 'call'>,
    private readonly kinds: ReadonlySet<SecurityEventKind>,
    private readonly patience = PATIENCE,
  ) {}

  wants(kind: SecurityEventKind): boolean {
    return this.kinds.size === 0 || this.kinds.has(kind);
  }

  hear(event: SecurityEvent): void {
    if (this.#running.size < MOST_RUNNING) this.#start(event);
    else if (this.#waiting.length < MOST_WAITING) this.#waiting.push(event);
    else this.#logOnce(MISSES);
  }

  /** Resolves when no call runs and none waits, or after `patience` milliseconds, which it logs. */
  async idle(patience = SHUTDOWN_PATIENCE): Promise<void> {
    if (this.#running.size === 0) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((resolve) => (timer = setTimeout(resolve, patience, LATE)));
    if ((await Promise.race([this.#allDone(), late])) === LATE) this.#logOnce(LATE);
    clearTimeout(timer);
  }

  async #allDone(): Promise<void> {
    // A call that ends begins the next one.
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  #start(event: SecurityEvent): void {
    const call = this.#call(event).finally(() => {
      this.#running.delete(call);
      const next = this.#waiting.shift();
      if (next) this.#start(next);
    });
    this.#running.add(call);
  }

  async #call(event: SecurityEvent): Promise<void> {
    const hangs = setTimeout(() => this.#logOnce(HANGS), this.patience).unref();
    try {
      // Let the request go on first.
      await Promise.resolve();
      await this.method.call(event);
    } catch (error) {
      this.#logOnce(FAILS, shownStack(error));
    } finally {
      clearTimeout(hangs);
    }
  }

  #logOnce(sentence: string, stack?: string): void {
    if (this.#logged.has(sentence)) return;
    this.#logged.add(sentence);
    logger.error(`${this.method.name} ${sentence}`, stack);
  }
}

const FAILS = 'failed to handle a security event. Its later failures are not logged';

const HANGS =
  `takes too long to handle a security event. At most ${MOST_RUNNING} of its calls run at a time, and later events ` +
  'wait. This is logged once';

const MISSES = `misses security events, because ${MOST_WAITING} of them already wait for it. This is logged once`;

const LATE = 'has not finished with all security events at the shutdown, which no longer waits for it';
