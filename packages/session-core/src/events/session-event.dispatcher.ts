import { Inject, Injectable, Optional } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { SESSION_OPTIONS } from '../configuration/session.module-definition.js';
import type { ResolvedSessionOptions } from '../configuration/session.options.js';
import type { BoundMethod } from '../discovery/discover-methods.js';
import { shownText } from '../logging/shown-error.js';
import { SESSION_TELEMETRY, type SessionTelemetry } from '../telemetry/session-telemetry.js';
import { EventEmitterBridge } from './event-emitter.bridge.js';
import {
  type DispatchOptions,
  HandlerDispatcher,
  type HandlerKind,
  SessionEventHandlingError,
} from './handler.dispatcher.js';
import {
  type HandledEvent,
  handlesGaps,
  SESSION_EVENT_MARKS,
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

/** A broadcast handler of the library itself; `name` is `Class.method`. */
interface OwnHandler extends Pick<HandledEvent, 'eventClass'> {
  readonly name: string;
  handle(event: SessionEvent): unknown;
}

interface OwnHandlers {
  readonly events: readonly OwnHandler[];
  readonly gaps: readonly { readonly name: string; handle(gap: SessionEventGap): unknown }[];
}

/** Calls the `@OnSessionEvent` methods of this application, and its EventEmitter, with session events. */
@Injectable()
export class SessionEventDispatcher extends HandlerDispatcher<SessionEvent, HandledEvent> {
  #gaps: readonly BoundMethod[] | undefined;
  #own: OwnHandlers = { events: [], gaps: [] };
  #wantsBroadcast = false;
  #beginBroadcast: (() => Promise<void>) | undefined;

  /** @internal Nest injects it. */
  constructor(
    @Inject(DiscoveryService) discovery: DiscoveryService,
    @Inject(MetadataScanner) scanner: MetadataScanner,
    @Inject(EventEmitterBridge) private readonly mirror: EventEmitterBridge,
    @Optional() @Inject(SESSION_OPTIONS) private readonly options?: Pick<ResolvedSessionOptions, 'ids'>,
    @Optional() @Inject(SESSION_TELEMETRY) telemetry?: SessionTelemetry,
  ) {
    super(kindOf(options), discovery, scanner, telemetry, () => mirror.ready());
  }

  /** With `@OnEvent('session.created')` for a listener of the EventEmitter: ask after `ready()`. */
  override get handlerNames(): readonly string[] {
    const listened = this.mirror.listenedTypes.map((type) => `@OnEvent('${sessionEventName(type)}')`);
    return [...new Set([...super.handlerNames, ...listened])].toSorted();
  }

  /** Ask after `ready()`. */
  override wantedTypes(options: { readonly broadcast?: boolean } = {}): readonly SessionEventType[] {
    const types = super.wantedTypes(options);
    const listened = options.broadcast ? [] : this.mirror.listenedTypes;
    const own = options.broadcast && this.#wantsBroadcast ? this.#own.events.flatMap(typesOf) : [];
    return SESSION_EVENT_TYPES.filter((type) => [...types, ...listened, ...own].includes(type));
  }

  override get hasBroadcastHandlers(): boolean {
    return this.#wantsBroadcast || super.hasBroadcastHandlers;
  }

  /** Adds broadcast handlers of the library itself. A store need not tell them anything before `wantBroadcast()`. */
  addOwnHandlers({ events, gaps }: OwnHandlers): void {
    this.#own = { events: [...this.#own.events, ...events], gaps: [...this.#own.gaps, ...gaps] };
  }

  /** From now on, the handlers of the library count as broadcast handlers. Resolves when they get every event. */
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

  override async broadcast(event: SessionEvent): Promise<void> {
    const handlers = this.#own.events.filter(({ eventClass }) => event instanceof eventClass);
    // Telemetry shows the handlers of the application alone.
    const own = async () => {
      await this.callAll(handlers, `session event ${shownIdOf(event, this.options)}`, ({ handle }) => handle(event));
    };
    await Promise.all([super.broadcast(event), this.run(own).catch(() => undefined)]);
  }

  /** Calls the `@OnSessionEventGap` methods as `broadcast()` calls its handlers. */
  reportGap(gap: SessionEventGap): Promise<void> {
    return this.run(async () => {
      const methods = this.#gapMethods.map(({ name, call }) => ({ name, handle: call }));
      await this.callAll([...methods, ...this.#own.gaps], 'a gap', ({ handle }) => handle(gap));
    }).catch(() => undefined);
  }

  override onModuleInit(): void {
    super.onModuleInit();
    void this.#gapMethods;
  }

  protected override onDispatch(event: SessionEvent, { redelivered = false }: DispatchOptions): void {
    if (redelivered) return;
    void this.track(this.mirror.emit(event, shownIdOf(event, this.options))).catch(() => undefined);
  }

  get #gapMethods(): readonly BoundMethod[] {
    const found = () => [...this.discovered()].filter(({ method }) => handlesGaps(method));
    return (this.#gaps ??= found().map(({ bind }) => bind('@OnSessionEventGap')));
  }
}

function kindOf(options: Pick<ResolvedSessionOptions, 'ids'> | undefined): HandlerKind<SessionEvent, HandledEvent> {
  return {
    what: 'session events',
    module: 'SessionModule',
    marks: SESSION_EVENT_MARKS,
    typesOf,
    handles: ({ eventClass }, event) => event instanceof eventClass,
    shown: (event) => `session event ${shownIdOf(event, options)}`,
    contextOf: (event) => {
      const { type, at, attempt, traceparent } = event;
      return { type, eventId: shownIdOf(event, options), at, attempt, traceparent };
    },
    failure: (event, failed, called) =>
      new SessionEventHandlingError(`Session event ${shownIdOf(event, options)}`, failed, called),
  };
}

function typesOf({ eventClass }: Pick<HandledEvent, 'eventClass'>): readonly SessionEventType[] {
  return SESSION_EVENT_TYPES.filter((type) => {
    const wanted: SessionEventClass = SESSION_EVENT_CLASSES[type];
    return wanted === eventClass || wanted.prototype instanceof eventClass;
  });
}

/** Returns `event.id`, with a fingerprint in place of a session id that is a token. */
function shownIdOf(
  { type, sessionId }: SessionEvent,
  options: Pick<ResolvedSessionOptions, 'ids'> | undefined,
): string {
  return shownText(sessionEventId(type, options?.ids.shown(sessionId) ?? sessionId));
}
