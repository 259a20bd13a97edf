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
import { callHandler, RunningHandlers, succeededOf } from './running-handlers.js';
import { type FailedHandler, SessionEventHandlingError } from './session-event-handling.error.js';
import type { SessionEventGap } from './on-session-event-gap.decorator.js';
import { type ExploredHandlers, SessionEventExplorer, type SessionEventHandler } from './session-event.explorer.js';
import {
  SESSION_EVENT_CLASSES,
  SESSION_EVENT_TYPES,
  type SessionEvent,
  sessionEventId,
  sessionEventName,
  type SessionEventType,
} from './session.events.js';
import { eventChannel, traced } from '../telemetry/channels.js';
import { SESSION_TELEMETRY, type SessionTelemetry } from '../telemetry/session-telemetry.js';
import { shownText } from '../logging/shown-error.js';

/** Tells `SessionEventDispatcher.dispatch()` how to treat an event that was dispatched before. */
export interface DispatchOptions {
  /** Whether any instance dispatched the event before. EventEmitter listeners do not get it again. */
  readonly redelivered?: boolean;
  /** The names of the handlers that already succeeded. They are not called again. */
  readonly done?: readonly string[];
}

/**
 * Calls the `@OnSessionEvent` methods of this application, and its EventEmitter, with session events. It calls and
 * awaits each handler on its own. It logs a handler that fails, and the error names it. The dispatcher keeps no record:
 * the caller decides whether to retry the failed handlers.
 */
@Injectable()
export class SessionEventDispatcher implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown {
  readonly #running: RunningHandlers;
  #handlers: ExploredHandlers | undefined;
  #own: ExploredHandlers = { events: [], gaps: [] };
  #wantsBroadcast = false;
  #beginBroadcast: (() => Promise<void>) | undefined;
  #bootstrapped!: () => void;

  constructor(
    @Inject(SessionEventExplorer) private readonly explorer: SessionEventExplorer,
    @Inject(EventEmitterBridge) private readonly mirror: EventEmitterBridge,
    @Optional() @Inject(SESSION_OPTIONS) private readonly options?: Pick<ResolvedSessionOptions, 'ids'>,
    @Optional() @Inject(SESSION_TELEMETRY) private readonly telemetry?: SessionTelemetry,
  ) {
    const bootstrapped = new Promise<void>((resolve) => (this.#bootstrapped = resolve));
    this.#running = new RunningHandlers(
      'session events',
      bootstrapped.then(() => this.mirror.ready()),
    );
  }

  /**
   * Whether this application has a handler for the session events of its group: an `@OnSessionEvent` method or a
   * listener of the EventEmitter. A listener counts once it is attached, so ask after `ready()`.
   */
  get hasHandlers(): boolean {
    return this.#explored.events.some(({ broadcast }) => !broadcast) || this.mirror.listenedTypes.length > 0;
  }

  /**
   * The names of the group's handlers in alphabetical order: those of `@OnSessionEvent` methods, and
   * `@OnEvent('session.created')` for listeners of the EventEmitter. Ask after `ready()`.
   */
  get handlerNames(): readonly string[] {
    const names = this.#explored.events.filter(({ broadcast }) => !broadcast).map(({ name }) => name);
    const listened = this.mirror.listenedTypes.map((type) => `@OnEvent('${sessionEventName(type)}')`);
    return [...new Set([...names, ...listened])].sort();
  }

  /**
   * The types of events that the group's handlers want or, with `broadcast`, that broadcast handlers want. A listener
   * of the EventEmitter counts once it is attached, so ask after `ready()`.
   */
  wantedTypes({ broadcast = false }: { readonly broadcast?: boolean } = {}): readonly SessionEventType[] {
    const own = broadcast && this.#wantsBroadcast ? this.#own.events : [];
    const methods = [...this.#explored.events.filter((each) => each.broadcast === broadcast), ...own];
    const listened = broadcast ? [] : this.mirror.listenedTypes;
    return SESSION_EVENT_TYPES.filter(
      (type) => listened.includes(type) || methods.some(({ wants }) => wants(SESSION_EVENT_CLASSES[type])),
    );
  }

  /** Whether this application has a method for broadcast events. */
  get hasBroadcastHandlers(): boolean {
    return this.#wantsBroadcast || this.#explored.events.some(({ broadcast }) => broadcast);
  }

  /** Adds broadcast handlers of the library itself. A store need not tell them anything before `wantBroadcast()`. */
  addOwnHandlers({ events, gaps }: ExploredHandlers): void {
    this.#own = { events: [...this.#own.events, ...events], gaps: [...this.#own.gaps, ...gaps] };
  }

  /**
   * From now on, the handlers of the library count as broadcast handlers. Resolves when they get every event from now
   * on.
   */
  async wantBroadcast(): Promise<void> {
    const begin = this.#beginBroadcast;
    this.#wantsBroadcast = true;
    this.#beginBroadcast = undefined;
    await begin?.();
  }

  /** Calls `begin`, once, when there is the first broadcast handler; ask for `hasBroadcastHandlers` before. */
  whenBroadcastIsWanted(begin: () => Promise<void>): void {
    this.#beginBroadcast = begin;
  }

  /** Resolves when the application is bootstrapped and all handlers can be called. Until then it stays pending. */
  ready(): Promise<void> {
    return this.#running.ready();
  }

  /**
   * Calls all handlers of the event at once, except broadcast handlers, as soon as the application is ready. Resolves
   * when they have finished. The handlers of two events start in the order of the calls.
   * @throws SessionEventHandlingError that names the failed handlers; another error after `giveUp()`
   */
  dispatch(event: SessionEvent, options: DispatchOptions = {}): Promise<void> {
    return this.#running.run(() => this.#dispatch(event, options));
  }

  /** Calls the broadcast handlers at once, as soon as the application is ready. It only logs a failure. */
  broadcast(event: SessionEvent): Promise<void> {
    return this.#running.run(() => this.#broadcast(event)).catch(() => undefined);
  }

  /** Calls the `@OnSessionEventGap` methods as `broadcast()` calls its handlers. */
  reportGap(gap: SessionEventGap): Promise<void> {
    return this.#running.run(() => this.#reportGap(gap)).catch(() => undefined);
  }

  /** Resolves when no handler and no listener of the EventEmitter is running, or after `giveUp()`. */
  idle(): Promise<void> {
    return this.#running.idle();
  }

  /** Stops waiting for handlers, and rejects every dispatch that has not finished. */
  giveUp(): void {
    this.#running.giveUp();
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
    void this.#explored;
  }

  /** Begins to deliver events to their handlers. Called by Nest. */
  onApplicationBootstrap(): void {
    this.#bootstrapped();
  }

  /** Waits for the running handlers. Called by Nest. */
  onApplicationShutdown(): Promise<void> {
    return this.idle();
  }

  get #explored(): ExploredHandlers {
    return (this.#handlers ??= this.explorer.explore());
  }

  async #dispatch(event: SessionEvent, { redelivered = false, done = [] }: DispatchOptions): Promise<void> {
    if (!redelivered) void this.#running.track(this.mirror.emit(event, this.#shown(event))).catch(() => undefined);
    const handlers = this.#handlersOf(event, { broadcast: false }).filter(({ name }) => !done.includes(name));
    const failed = await this.#callAll(handlers, event);
    if (failed.length === 0) return;
    throw new SessionEventHandlingError(this.#shown(event), failed, succeededOf(handlers, failed));
  }

  async #broadcast(event: SessionEvent): Promise<void> {
    await this.#callAll(this.#handlersOf(event, { broadcast: true }), event);
  }

  async #reportGap(gap: SessionEventGap): Promise<void> {
    const gaps = [...this.#explored.gaps, ...this.#own.gaps];
    await Promise.all(gaps.map(({ name, handle }) => callHandler(name, 'a gap', () => handle(gap))));
  }

  #handlersOf(event: SessionEvent, { broadcast }: { broadcast: boolean }): SessionEventHandler[] {
    const all = [...this.#explored.events, ...this.#own.events];
    return all.filter((each) => each.broadcast === broadcast && each.handles(event));
  }

  async #callAll(handlers: readonly SessionEventHandler[], event: SessionEvent): Promise<FailedHandler[]> {
    const what = `session event ${this.#shown(event)}`;
    const results = await Promise.all(
      handlers.map((each) => callHandler(each.name, what, () => this.#run(each, event))),
    );
    return results.filter((result) => result !== undefined);
  }

  #run(handler: SessionEventHandler, event: SessionEvent): unknown {
    const { telemetry } = this;
    const { name, broadcast, handle } = handler;
    // Telemetry shows the handlers of the application.
    if ((!telemetry && !eventChannel.hasSubscribers) || this.#own.events.includes(handler)) return handle(event);
    const { type, at, attempt, traceparent } = event;
    const context = { handler: name, type, eventId: this.#shown(event), at, attempt, broadcast, traceparent };
    const run = () => handle(event);
    return traced(eventChannel, context, () => (telemetry ? telemetry.runHandler(run, context) : run()));
  }

  /** Returns `event.id`, with a fingerprint in place of a session id that is a token. */
  #shown({ type, sessionId }: SessionEvent): string {
    return shownText(sessionEventId(type, this.options?.ids.shown(sessionId) ?? sessionId));
  }
}
