import type { OnApplicationBootstrap, OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import { isObservable, lastValueFrom } from 'rxjs';
import { logger } from '../logging/session.logger.js';
import { shownStack } from '../logging/shown-error.js';
import { eventChannel, type SessionHandlerContext, traced } from '../telemetry/channels.js';
import type { SessionTelemetry } from '../telemetry/session-telemetry.js';
import type { FailedHandler } from './event-handling.errors.js';

/** Tells `dispatch()` how to treat an event that was dispatched before. */
export interface DispatchOptions {
  /** Whether any instance dispatched the event before. EventEmitter listeners do not get it again. */
  readonly redelivered?: boolean;
  /** The names of the handlers that already succeeded. They are not called again. */
  readonly done?: readonly string[];
}

/**
 * Calls handlers of this application with events. It calls and awaits each handler on its own, logs one that fails, and
 * keeps no record: the caller decides whether to retry the failed ones. A shutdown waits for those that run.
 */
export abstract class HandlerDispatcher implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown {
  /** The running work, each with a function that stops the wait for it. */
  readonly #running = new Map<Promise<void>, (reason: Error) => void>();
  readonly #ready: Promise<void>;
  #bootstrapped!: () => void;
  #givenUp: Error | undefined;
  #isReady = false;

  /**
   * @internal
   * @param what is handled, as in 'session events'
   * @param prepare what is left to do when the application is bootstrapped, before handlers can be called
   */
  constructor(
    private readonly what: string,
    private readonly telemetry: SessionTelemetry | undefined,
    prepare?: () => Promise<void>,
  ) {
    this.#ready = new Promise<void>((resolve) => (this.#bootstrapped = resolve)).then(prepare).then(() => {
      this.#isReady = true;
    });
  }

  /** @internal Finds the handlers. @throws InvalidSessionOptionsError for one that cannot be called */
  protected abstract explore(): void;

  /** Resolves when the application is bootstrapped and all handlers can be called. Until then it stays pending. */
  ready(): Promise<void> {
    return this.#ready;
  }

  /** Resolves when no handler and no listener of the EventEmitter is running, or after `giveUp()`. */
  async idle(): Promise<void> {
    // Before the application is ready, no handler runs, and dispatched events may never start.
    while (this.#isReady && this.#running.size > 0) await Promise.allSettled(this.#running.keys());
  }

  /** Stops waiting for handlers, and rejects every dispatch that has not finished. */
  giveUp(): void {
    this.#givenUp = new Error(`The application shut down before all ${this.what} were handled`);
    for (const reject of this.#running.values()) reject(this.#givenUp);
  }

  /** Tells the telemetry that an event of this type has become a dead letter because of this handler. */
  reportDeadLetter(type: string, handler: string): void {
    this.telemetry?.deadLettered(type, handler);
  }

  /**
   * Called by Nest.
   * @throws InvalidSessionOptionsError for a handler that cannot be called, such as one of a request-scoped provider
   */
  onModuleInit(): void {
    // A handler that can never be called has to fail the start, not the first event.
    this.explore();
  }

  /** Begins to deliver events to their handlers. Called by Nest. */
  onApplicationBootstrap(): void {
    this.#bootstrapped();
  }

  /** Waits for the running handlers. Called by Nest. */
  onApplicationShutdown(): Promise<void> {
    return this.idle();
  }

  /**
   * @internal Begins as soon as handlers can be called. Settles as the work does, or rejects when `giveUp()` comes
   * first.
   */
  protected run(work: () => Promise<void>): Promise<void> {
    return this.track(this.#ready.then(work));
  }

  /** @internal The same for work that has begun. */
  protected track(work: Promise<void>): Promise<void> {
    let giveUp!: (reason: Error) => void;
    const tracked = new Promise<void>((resolve, reject) => {
      giveUp = reject;
      work.then(resolve, reject);
    });
    if (this.#givenUp) giveUp(this.#givenUp);
    this.#running.set(tracked, giveUp);
    const done = () => this.#running.delete(tracked);
    tracked.then(done, done);
    return tracked;
  }

  /**
   * @internal Calls handlers at once, and subscribes to an Observable that one returns, as Nest does. Resolves to those
   * that failed, which it logs. `what` they handle, as log lines say it.
   */
  protected async callAll<Handler extends { readonly name: string }>(
    handlers: readonly Handler[],
    what: string,
    call: (handler: Handler) => unknown,
  ): Promise<FailedHandler[]> {
    const failures = handlers.map(async (handler) => {
      try {
        const result = await call(handler);
        if (isObservable(result)) await lastValueFrom(result, { defaultValue: undefined });
        return [];
      } catch (cause) {
        logger.error(`${handler.name} failed to handle ${what}`, shownStack(cause));
        return [{ name: handler.name, cause }];
      }
    });
    return (await Promise.all(failures)).flat();
  }

  /** @internal Tells channels and the telemetry of a call, where somebody listens. */
  protected observed(call: () => unknown, contextOf: () => SessionHandlerContext): unknown {
    const { telemetry } = this;
    if (!telemetry && !eventChannel.hasSubscribers) return call();
    const context = contextOf();
    return traced(eventChannel, context, () => (telemetry ? telemetry.runHandler(call, context) : call()));
  }
}
