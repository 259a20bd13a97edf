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
import type { SessionEventGap } from './on-session-event-gap.decorator.js';
import { type ExploredHandlers, SessionEventExplorer } from './session-event.explorer.js';
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
  #handlers: ExploredHandlers | undefined;
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
   * Whether anything in this application handles the session events of its group: an `@OnSessionEvent` method, or a
   * listener of the EventEmitter, which counts once it is attached. To be asked after `ready()`.
   */
  get hasHandlers(): boolean {
    return this.#explored.events.some(({ broadcast }) => !broadcast) || this.mirror.hasListeners;
  }

  /** Whether a method of this application is to hear of the events that are broadcast. */
  get hasBroadcastHandlers(): boolean {
    return this.#explored.events.some(({ broadcast }) => broadcast);
  }

  /** Resolves when the application is bootstrapped and all handlers can be called; not at all if it never is. */
  ready(): Promise<void> {
    return this.#ready;
  }

  /**
   * Calls all handlers of the event but those for what is broadcast, at once, when the application is ready, and resolves when they have finished.
   * Handlers of two events are started in the order of the calls.
   * @throws SessionEventHandlingError that names the handlers which failed
   */
  dispatch(event: SessionEvent, options: DispatchOptions = {}): Promise<void> {
    return this.#track(this.#ready.then(() => this.#dispatch(event, options)));
  }

  /** Calls the handlers with `broadcast: true`, at once, when the application is ready. What fails is only logged. */
  broadcast(event: SessionEvent): Promise<void> {
    return this.#track(this.#ready.then(() => this.#broadcast(event)));
  }

  /** Calls the `@OnSessionEventGap` methods, in the same way. */
  reportGap(gap: SessionEventGap): Promise<void> {
    return this.#track(this.#ready.then(() => this.#reportGap(gap)));
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

  get #explored(): ExploredHandlers {
    return (this.#handlers ??= this.explorer.explore());
  }

  async #dispatch(event: SessionEvent, { redelivered = false }: DispatchOptions): Promise<void> {
    if (!redelivered) void this.#track(this.mirror.emit(event));
    const failed = await this.#callAll(event, { broadcast: false });
    if (failed.length > 0) throw new SessionEventHandlingError(event, failed);
  }

  async #broadcast(event: SessionEvent): Promise<void> {
    await this.#callAll(event, { broadcast: true });
  }

  async #reportGap(gap: SessionEventGap): Promise<void> {
    await Promise.all(this.#explored.gaps.map(({ name, handle }) => this.#call(name, 'a gap', () => handle(gap))));
  }

  async #callAll(event: SessionEvent, { broadcast }: { broadcast: boolean }): Promise<FailedHandler[]> {
    const handlers = this.#explored.events.filter((each) => each.broadcast === broadcast && each.handles(event));
    const what = `session event ${event.id}`;
    const results = await Promise.all(handlers.map(({ name, handle }) => this.#call(name, what, () => handle(event))));
    return results.filter((result) => result !== undefined);
  }

  async #call(name: string, what: string, handle: () => unknown): Promise<FailedHandler | undefined> {
    try {
      await handle();
      return undefined;
    } catch (cause) {
      const stack = cause instanceof Error ? cause.stack : String(cause);
      this.#logger.error(`${name} failed to handle ${what}`, stack);
      return { name, cause };
    }
  }

  #track<T>(work: Promise<T>): Promise<T> {
    this.#running.add(work);
    const done = () => this.#running.delete(work);
    work.then(done, done);
    return work;
  }
}
