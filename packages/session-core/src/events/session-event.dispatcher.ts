import { Inject, Injectable, Optional } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { SESSION_OPTIONS } from '../configuration/session.module-definition.js';
import type { ResolvedSessionOptions } from '../configuration/session.options.js';
import { assertToldApart, type BoundMethod, discoverMethods } from '../discovery/discover-methods.js';
import { shownText } from '../logging/shown-error.js';
import { SESSION_TELEMETRY, type SessionTelemetry } from '../telemetry/session-telemetry.js';
import { EventEmitterBridge } from './event-emitter.bridge.js';
import { SessionEventHandlingError } from './event-handling.errors.js';
import { type DispatchOptions, HandlerDispatcher } from './handler.dispatcher.js';
import {
  handledEvents,
  handlesGaps,
  type SessionEventClass,
  type SessionEventGap,
} from './on-session-event.decorator.js';
import {
  SESSION_EVENT_CLASSES,
  SESSION_EVENT_TYPES,
  type SessionEvent,
  sessionEventId,
  sessionEventName,
  type SessionEventType,
} from './session.events.js';

/** A method with `@OnSessionEvent`, bound to its instance. */
interface SessionEventHandler {
  /** `Class.method` */
  readonly name: string;
  /** The name of the module that has its class. */
  readonly module: string;
  /** Whether it is called on every instance of the application instead of on one instance of the group. */
  readonly broadcast: boolean;
  handles(event: SessionEvent): boolean;
  /** Whether it handles the events of a class. */
  wants(eventClass: SessionEventClass): boolean;
  handle(event: SessionEvent): unknown;
}

/** A method with `@OnSessionEventGap`, bound to its instance. */
interface SessionEventGapHandler {
  readonly name: string;
  handle(gap: SessionEventGap): unknown;
}

interface ExploredHandlers {
  readonly events: readonly SessionEventHandler[];
  readonly gaps: readonly SessionEventGapHandler[];
}

/** Calls the `@OnSessionEvent` methods of this application, and its EventEmitter, with session events. */
@Injectable()
export class SessionEventDispatcher extends HandlerDispatcher {
  #handlers: ExploredHandlers | undefined;
  #own: ExploredHandlers = { events: [], gaps: [] };
  #wantsBroadcast = false;
  #beginBroadcast: (() => Promise<void>) | undefined;

  /** @internal Nest injects it. */
  constructor(
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(MetadataScanner) private readonly scanner: MetadataScanner,
    @Inject(EventEmitterBridge) private readonly mirror: EventEmitterBridge,
    @Optional() @Inject(SESSION_OPTIONS) private readonly options?: Pick<ResolvedSessionOptions, 'ids'>,
    @Optional() @Inject(SESSION_TELEMETRY) telemetry?: SessionTelemetry,
  ) {
    super('session events', telemetry, () => mirror.ready());
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

  /**
   * Calls all handlers of the event at once, except broadcast handlers, as soon as the application is ready. Resolves
   * when they have finished. The handlers of two events start in the order of the calls.
   * @throws SessionEventHandlingError that names the failed handlers; another error after `giveUp()`
   */
  dispatch(event: SessionEvent, { redelivered = false, done = [] }: DispatchOptions = {}): Promise<void> {
    return this.run(async () => {
      if (!redelivered) void this.track(this.mirror.emit(event, this.#shown(event))).catch(() => undefined);
      const { failed, called } = await this.#call(event, false, done);
      if (failed.length > 0) throw new SessionEventHandlingError(this.#shown(event), failed, called);
    });
  }

  /** Calls the broadcast handlers at once, as soon as the application is ready. It only logs a failure. */
  broadcast(event: SessionEvent): Promise<void> {
    return this.run(() => this.#call(event, true).then(() => undefined)).catch(() => undefined);
  }

  /** Calls the `@OnSessionEventGap` methods as `broadcast()` calls its handlers. */
  reportGap(gap: SessionEventGap): Promise<void> {
    return this.run(async () => {
      const gaps = [...this.#explored.gaps, ...this.#own.gaps];
      await this.callAll(gaps, 'a gap', ({ handle }) => handle(gap));
    }).catch(() => undefined);
  }

  protected explore(): void {
    void this.#explored;
  }

  get #explored(): ExploredHandlers {
    return (this.#handlers ??= exploredHandlers(this.discovery, this.scanner));
  }

  async #call(event: SessionEvent, broadcast: boolean, done: readonly string[] = []) {
    const all = [...this.#explored.events, ...this.#own.events];
    const handlers = all.filter(
      (each) => each.broadcast === broadcast && each.handles(event) && !done.includes(each.name),
    );
    const eventId = this.#shown(event);
    const { type, at, attempt, traceparent } = event;
    const failed = await this.callAll(handlers, `session event ${eventId}`, (handler) => {
      // Telemetry shows the handlers of the application.
      if (this.#own.events.includes(handler)) return handler.handle(event);
      return this.observed(
        () => handler.handle(event),
        () => ({ handler: handler.name, type, eventId, at, attempt, broadcast, traceparent }),
      );
    });
    return { failed, called: handlers.map(({ name }) => name) };
  }

  /** Returns `event.id`, with a fingerprint in place of a session id that is a token. */
  #shown({ type, sessionId }: SessionEvent): string {
    return shownText(sessionEventId(type, this.options?.ids.shown(sessionId) ?? sessionId));
  }
}

/**
 * Finds the `@OnSessionEvent` and `@OnSessionEventGap` methods of all providers and controllers of the application.
 * @throws InvalidSessionOptionsError for a method of a request-scoped or transient class, which has no single instance,
 *   and for two methods of one name that handle one event
 */
function exploredHandlers(discovery: DiscoveryService, scanner: MetadataScanner): ExploredHandlers {
  const explored = { events: [] as SessionEventHandler[], gaps: [] as SessionEventGapHandler[] };
  for (const { method, bind } of discoverMethods(discovery, scanner)) {
    explored.events.push(...eventHandlers(method, () => bind('@OnSessionEvent')));
    if (handlesGaps(method)) {
      const { name, call } = bind('@OnSessionEventGap');
      explored.gaps.push({ name, handle: call });
    }
  }
  const recorded = explored.events.filter(({ broadcast }) => !broadcast);
  const typesOf = ({ wants }: SessionEventHandler) =>
    SESSION_EVENT_TYPES.filter((type) => wants(SESSION_EVENT_CLASSES[type]));
  assertToldApart(
    recorded.map((each) => ({ name: each.name, module: each.module, events: typesOf(each) })),
    'SessionModule',
  );
  return explored;
}

function* eventHandlers(marked: unknown, bound: () => BoundMethod): Iterable<SessionEventHandler> {
  for (const broadcast of [false, true]) {
    const handled = handledEvents(marked).filter((each) => each.broadcast === broadcast);
    if (handled.length === 0) continue;
    const { name, module, call } = bound();
    const handles = (event: SessionEvent) => handled.some(({ eventClass }) => event instanceof eventClass);
    const wants = (wanted: SessionEventClass) =>
      handled.some(({ eventClass }) => wanted === eventClass || wanted.prototype instanceof eventClass);
    yield { name, module, broadcast, handles, wants, handle: call };
  }
}
