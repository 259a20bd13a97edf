import { setMaxListeners } from 'node:events';
import {
  Inject,
  Injectable,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleInit,
  Optional,
} from '@nestjs/common';
import { SESSION_OPTIONS } from '../configuration/session.module-definition.js';
import type { ResolvedSessionOptions } from '../configuration/session.options.js';
import { EventEmitterBridge } from './event-emitter.bridge.js';
import { type FailedHandler, SessionEventHandlingError } from './session-event-handling.error.js';
import type { SessionEventGap } from './on-session-event-gap.decorator.js';
import { type ExploredHandlers, SessionEventExplorer, type SessionEventHandler } from './session-event.explorer.js';
import type { SessionEvent } from './session.events.js';
import { logger } from '../logging/session.logger.js';

/** How `SessionEventDispatcher.dispatch()` treats an event that was dispatched before. */
export interface DispatchOptions {
  /** The event has been dispatched before, here or elsewhere: EventEmitter listeners do not hear of it again. */
  readonly redelivered?: boolean;
  /** The names of handlers that have succeeded before and are not called again. */
  readonly done?: readonly string[];
}

/**
 * Gives session events to the `@OnSessionEvent` methods of this application, and to its EventEmitter. Every handler is
 * called and awaited on its own; a failed one is logged and named in the error. Nothing is remembered: whoever
 * dispatches decides whether to do it again, with those that have not succeeded.
 */
@Injectable()
export class SessionEventDispatcher implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown {
  readonly #running = new Set<Promise<void>>();
  readonly #ready: Promise<void>;
  readonly #givenUp = new AbortController();
  #handlers: ExploredHandlers | undefined;
  #bootstrapped!: () => void;
  #isReady = false;

  constructor(
    @Inject(SessionEventExplorer) private readonly explorer: SessionEventExplorer,
    @Inject(EventEmitterBridge) private readonly mirror: EventEmitterBridge,
    @Optional() @Inject(SESSION_OPTIONS) private readonly options?: Pick<ResolvedSessionOptions, 'ids'>,
  ) {
    // One for each event that is being handled: Node.js warns of more than ten.
    setMaxListeners(0, this.#givenUp.signal);
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

  /** The names of the `@OnSessionEvent` methods for the events of its group, in alphabetical order. */
  get handlerNames(): readonly string[] {
    const names = this.#explored.events.filter(({ broadcast }) => !broadcast).map(({ name }) => name);
    return [...new Set(names)].sort();
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
   * Calls all handlers of the event but those for what is broadcast, at once, when the application is ready, and resolves
   * when they have finished. Handlers of two events are started in the order of the calls.
   * @throws SessionEventHandlingError that names the handlers which failed; another error after `giveUp()`
   */
  dispatch(event: SessionEvent, options: DispatchOptions = {}): Promise<void> {
    return this.#track(this.#ready.then(() => this.#dispatch(event, options)));
  }

  /** Calls the handlers with `broadcast: true`, at once, when the application is ready. What fails is only logged. */
  broadcast(event: SessionEvent): Promise<void> {
    return this.#track(this.#ready.then(() => this.#broadcast(event))).catch(() => undefined);
  }

  /** Calls the `@OnSessionEventGap` methods, in the same way. */
  reportGap(gap: SessionEventGap): Promise<void> {
    return this.#track(this.#ready.then(() => this.#reportGap(gap))).catch(() => undefined);
  }

  /** Resolves when no handler is running, the listeners of the EventEmitter included, or they have been given up. */
  async idle(): Promise<void> {
    // Before it is ready, nothing runs and nothing that waits may ever start.
    while (this.#isReady && this.#running.size > 0) await Promise.allSettled(this.#running);
  }

  /** No handler is waited for any more: what was dispatched and has not finished is rejected. */
  giveUp(): void {
    this.#givenUp.abort(new Error('The application has ended before all session events were handled'));
  }

  /** Called by Nest. @throws Error for a handler that cannot be called, such as one of a request-scoped provider */
  onModuleInit(): void {
    // A handler that cannot work must stop the start, not the first event.
    void this.#explored;
  }

  /** Lets the events go to their handlers. Called by Nest. */
  onApplicationBootstrap(): void {
    this.#bootstrapped();
  }

  /** Waits for the handlers that run. Called by Nest. */
  onApplicationShutdown(): Promise<void> {
    return this.idle();
  }

  get #explored(): ExploredHandlers {
    return (this.#handlers ??= this.explorer.explore());
  }

  async #dispatch(event: SessionEvent, { redelivered = false, done = [] }: DispatchOptions): Promise<void> {
    if (!redelivered) void this.#track(this.mirror.emit(event, this.#shown(event))).catch(() => undefined);
    const handlers = this.#handlersOf(event, { broadcast: false }).filter(({ name }) => !done.includes(name));
    const failed = await this.#callAll(handlers, event);
    if (failed.length === 0) return;
    // Two classes of the same name make two methods of the same name: it has succeeded when both have.
    const succeeded = new Set(handlers.map(({ name }) => name));
    for (const { name } of failed) succeeded.delete(name);
    throw new SessionEventHandlingError(this.#shown(event), failed, [...succeeded]);
  }

  async #broadcast(event: SessionEvent): Promise<void> {
    await this.#callAll(this.#handlersOf(event, { broadcast: true }), event);
  }

  async #reportGap(gap: SessionEventGap): Promise<void> {
    await Promise.all(this.#explored.gaps.map(({ name, handle }) => this.#call(name, 'a gap', () => handle(gap))));
  }

  #handlersOf(event: SessionEvent, { broadcast }: { broadcast: boolean }): SessionEventHandler[] {
    return this.#explored.events.filter((each) => each.broadcast === broadcast && each.handles(event));
  }

  async #callAll(handlers: readonly SessionEventHandler[], event: SessionEvent): Promise<FailedHandler[]> {
    const what = `session event ${this.#shown(event)}`;
    const results = await Promise.all(handlers.map(({ name, handle }) => this.#call(name, what, () => handle(event))));
    return results.filter((result) => result !== undefined);
  }

  /** `event.id`, without a token. */
  #shown({ type, sessionId }: SessionEvent): string {
    return `${type}:${this.options?.ids.shown(sessionId) ?? sessionId}`;
  }

  async #call(name: string, what: string, handle: () => unknown): Promise<FailedHandler | undefined> {
    try {
      await handle();
      return undefined;
    } catch (cause) {
      const stack = cause instanceof Error ? cause.stack : String(cause);
      logger.error(`${name} failed to handle ${what}`, stack);
      return { name, cause };
    }
  }

  #track(work: Promise<void>): Promise<void> {
    const tracked = unlessAborted(work, this.#givenUp.signal);
    this.#running.add(tracked);
    const done = () => this.#running.delete(tracked);
    tracked.then(done, done);
    return tracked;
  }
}

/** Settles as the work does, or rejects when the signal is aborted before. */
function unlessAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason as Error);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
