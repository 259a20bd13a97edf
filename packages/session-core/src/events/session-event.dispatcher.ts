import {
  Inject,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import { EventEmitterMirror } from './event-emitter.mirror.js';
import { type FailedHandler, SessionEventHandlingError } from './session-event-handling.error.js';
import { SessionEventExplorer, type SessionEventHandler } from './session-event.explorer.js';
import type { SessionEvent } from './session.events.js';

export interface DispatchOptions {
  /** The event has been dispatched before, here or elsewhere: EventEmitter listeners do not hear of it again. */
  readonly redelivered?: boolean;
}

/**
 * Gives session events to the `@OnSessionEvent` methods of this application, and to its EventEmitter. Every handler is
 * called and awaited on its own; a failed one is logged and named in the error. Nothing is remembered: whoever
 * dispatches decides whether to do it again.
 */
@Injectable()
export class SessionEventDispatcher implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown {
  readonly #logger = new Logger(SessionEventDispatcher.name);
  readonly #running = new Set<Promise<unknown>>();
  readonly #ready: Promise<void>;
  #handlers: readonly SessionEventHandler[] | undefined;
  #bootstrapped!: () => void;
  #isReady = false;

  constructor(
    @Inject(SessionEventExplorer) private readonly explorer: SessionEventExplorer,
    @Inject(EventEmitterMirror) private readonly mirror: EventEmitterMirror,
  ) {
    this.#ready = new Promise<void>((resolve) => (this.#bootstrapped = resolve)).then(async () => {
      await this.mirror.ready();
      this.#isReady = true;
    });
  }

  /**
   * Whether anything in this application handles session events: an `@OnSessionEvent` method, or a listener of the
   * EventEmitter, which counts once it is attached. To be asked after `ready()`.
   */
  get hasHandlers(): boolean {
    return this.#explored.length > 0 || this.mirror.hasListeners;
  }

  /** Resolves when the application is bootstrapped and all handlers can be called; not at all if it never is. */
  ready(): Promise<void> {
    return this.#ready;
  }

  /**
   * Calls all handlers of the event, at once, when the application is ready, and resolves when they have finished.
   * Handlers of two events are started in the order of the calls.
   * @throws SessionEventHandlingError that names the handlers which failed
   */
  dispatch(event: SessionEvent, options: DispatchOptions = {}): Promise<void> {
    return this.#track(this.#ready.then(() => this.#dispatch(event, options)));
  }

  /** Resolves when no handler is running, the listeners of the EventEmitter included. */
  async idle(): Promise<void> {
    // Before it is ready, nothing runs and nothing that waits may ever start.
    while (this.#isReady && this.#running.size > 0) await Promise.allSettled(this.#running);
  }

  onModuleInit(): void {
    // A handler that cannot work must stop the start, not the first event.
    void this.#explored;
  }

  onApplicationBootstrap(): void {
    this.#bootstrapped();
  }

  onApplicationShutdown(): Promise<void> {
    return this.idle();
  }

  get #explored(): readonly SessionEventHandler[] {
    return (this.#handlers ??= this.explorer.explore());
  }

  async #dispatch(event: SessionEvent, { redelivered = false }: DispatchOptions): Promise<void> {
    if (!redelivered) void this.#track(this.mirror.emit(event));
    const handlers = this.#explored.filter((handler) => handler.handles(event));
    const results = await Promise.all(handlers.map((handler) => this.#call(handler, event)));
    const failed = results.filter((result) => result !== undefined);
    if (failed.length > 0) throw new SessionEventHandlingError(event, failed);
  }

  async #call(handler: SessionEventHandler, event: SessionEvent): Promise<FailedHandler | undefined> {
    try {
      await handler.handle(event);
      return undefined;
    } catch (cause) {
      const stack = cause instanceof Error ? cause.stack : String(cause);
      this.#logger.error(`${handler.name} failed to handle session event ${event.id}`, stack);
      return { name: handler.name, cause };
    }
  }

  #track<T>(work: Promise<T>): Promise<T> {
    this.#running.add(work);
    const done = () => this.#running.delete(work);
    work.then(done, done);
    return work;
  }
}
