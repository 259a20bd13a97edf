import type { OnApplicationBootstrap, OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import type { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { assertToldApart, type BoundMethod, discoverMethods } from '../discovery/discover-methods.js';
import type { HandlerMark, HandlerMarks } from '../discovery/handler-marks.js';
import { logger } from '../logging/session.logger.js';
import { eventChannel, type SessionHandlerContext, traced } from '../telemetry/channels.js';
import type { SessionTelemetry } from '../telemetry/session-telemetry.js';
import { EventHandlingError } from './event-handling.error.js';
import { callHandler, RunningHandlers, succeededOf } from './running-handlers.js';
import type { DispatchOptions } from './session-event.dispatcher.js';

/** The name of events that a method is marked to handle. */
export interface HandledName extends HandlerMark {
  readonly name: string;
}

/** What the handlers of a decorator handle. */
export interface HandledKind<Event> {
  /** As in 'deadlines'. */
  readonly what: string;
  /** The module that calls them. */
  readonly module: string;
  /** What its decorator leaves on methods. */
  readonly marks: Pick<HandlerMarks<HandledName>, 'of' | 'decorator'>;
  /** The name by which handlers want an event. */
  nameOf(event: Event): string;
  /** An event as log lines name it. */
  shown(event: Event): string;
  /** What is traced of an event. */
  contextOf(event: Event): Omit<SessionHandlerContext, 'handler' | 'broadcast'>;
}

/** A method that is marked to handle events, bound to its instance. */
interface NamedEventHandler extends BoundMethod {
  readonly handled: readonly HandledName[];
}

/**
 * Calls the methods of this application that a decorator marks to handle events by their names. It calls and awaits
 * each on its own, logs one that fails, and keeps no record: the caller decides whether to retry.
 */
export abstract class NamedEventDispatcher<Event>
  implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown
{
  readonly #running: RunningHandlers;
  #handlers: readonly NamedEventHandler[] | undefined;
  #names: { readonly group: readonly string[]; readonly broadcast: readonly string[] } | undefined;
  #bootstrapped!: () => void;

  constructor(
    private readonly kind: HandledKind<Event>,
    private readonly discovery: DiscoveryService,
    private readonly scanner: MetadataScanner,
    private readonly telemetry: SessionTelemetry | undefined,
  ) {
    this.#running = new RunningHandlers(kind.what, new Promise((resolve) => (this.#bootstrapped = resolve)));
  }

  /** Whether it calls the methods with these marks. */
  calls(marks: object): boolean {
    return this.kind.marks === marks;
  }

  /** Whether this application has a handler that is not for broadcasts. */
  get hasHandlers(): boolean {
    return this.wantedTypes().length > 0;
  }

  /** The names of those handlers, as `Class.method`, in alphabetical order. */
  get handlerNames(): readonly string[] {
    const own = this.#explored.filter(({ handled }) => handled.some(({ broadcast }) => !broadcast));
    return [...new Set(own.map(({ name }) => name))].toSorted();
  }

  /** Whether it has one for broadcasts. */
  get hasBroadcastHandlers(): boolean {
    return this.wantedTypes({ broadcast: true }).length > 0;
  }

  /** The names of the events that the group's handlers want or, with `broadcast`, that broadcast handlers want. */
  wantedTypes({ broadcast = false }: { readonly broadcast?: boolean } = {}): readonly string[] {
    return broadcast ? this.#wanted.broadcast : this.#wanted.group;
  }

  /** Resolves when the application is bootstrapped and handlers can be called. */
  ready(): Promise<void> {
    return this.#running.ready();
  }

  /**
   * Calls the handlers of an event at once, except those for broadcasts and those that are `done`.
   * @throws EventHandlingError that names the failed handlers; another error after `giveUp()`
   */
  dispatch(event: Event, { done = [] }: DispatchOptions = {}): Promise<void> {
    return this.#running.run(async () => {
      const handlers = this.#handlersOf(event, false).filter(({ name }) => !done.includes(name));
      const failed = await this.#callAll(handlers, event, false);
      if (failed.length > 0)
        throw new EventHandlingError(this.kind.shown(event), failed, succeededOf(handlers, failed));
    });
  }

  /** Calls the handlers for broadcasts. It only logs a failure. */
  broadcast(event: Event): Promise<void> {
    const work = () => this.#callAll(this.#handlersOf(event, true), event, true).then(() => undefined);
    return this.#running.run(work).catch(() => undefined);
  }

  /** Broadcasts were missed. */
  async reportGap({ since }: { readonly since: number }): Promise<void> {
    const from = new Date(since).toISOString();
    const { marks, what } = this.kind;
    logger.warn(`Handlers of ${marks.decorator} with \`broadcast\` may have missed ${what} that came after ${from}`);
  }

  /** Tells the telemetry that an event of this type has become a dead letter because of this handler. */
  reportDeadLetter(type: string, handler: string): void {
    this.telemetry?.deadLettered(type, handler);
  }

  /** Resolves when no handler runs, or after `giveUp()`. */
  idle(): Promise<void> {
    return this.#running.idle();
  }

  /** Stops waiting for handlers, and rejects every dispatch that has not finished. */
  giveUp(): void {
    this.#running.giveUp();
  }

  /** A handler that can never be called fails the start. Called by Nest. */
  onModuleInit(): void {
    void this.#explored;
  }

  /** Called by Nest. */
  onApplicationBootstrap(): void {
    this.#bootstrapped();
  }

  /** Waits for the running handlers. Called by Nest. */
  onApplicationShutdown(): Promise<void> {
    return this.idle();
  }

  get #explored(): readonly NamedEventHandler[] {
    return (this.#handlers ??= this.#explore());
  }

  #explore(): readonly NamedEventHandler[] {
    const { module, marks } = this.kind;
    const handlers = [...discoverMethods(this.discovery, this.scanner, module)].flatMap(({ method, bind }) => {
      const handled = marks.of(method);
      return handled.length > 0 ? [{ ...bind(marks.decorator), handled }] : [];
    });
    const namesIn = ({ handled }: NamedEventHandler) =>
      handled.filter(({ broadcast }) => !broadcast).map(({ name }) => name);
    assertToldApart(
      handlers.map((each) => ({ name: each.name, module: each.module, events: namesIn(each) })),
      module,
    );
    return handlers;
  }

  /** Asked for with each event. */
  get #wanted() {
    return (this.#names ??= { group: namesOf(this.#explored, false), broadcast: namesOf(this.#explored, true) });
  }

  #handlersOf(event: Event, broadcast: boolean): NamedEventHandler[] {
    const wanted = this.kind.nameOf(event);
    const handles = (each: HandledName) => each.name === wanted && each.broadcast === broadcast;
    return this.#explored.filter(({ handled }) => handled.some(handles));
  }

  async #callAll(handlers: readonly NamedEventHandler[], event: Event, broadcast: boolean) {
    const what = this.kind.shown(event);
    const results = await Promise.all(
      handlers.map((each) => callHandler(each.name, what, () => this.#run(each, event, broadcast))),
    );
    return results.filter((result) => result !== undefined);
  }

  #run({ name: handler, call }: NamedEventHandler, event: Event, broadcast: boolean): unknown {
    const { telemetry } = this;
    if (!telemetry && !eventChannel.hasSubscribers) return call(event);
    const context = { handler, broadcast, ...this.kind.contextOf(event) };
    const run = () => call(event);
    return traced(eventChannel, context, () => (telemetry ? telemetry.runHandler(run, context) : run()));
  }
}

function namesOf(handlers: readonly NamedEventHandler[], broadcast: boolean): readonly string[] {
  const wanted = handlers.flatMap(({ handled }) => handled).filter((each) => each.broadcast === broadcast);
  return [...new Set(wanted.map(({ name }) => name))].toSorted();
}
