import type { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { assertToldApart, type BoundMethod, discoverMethods } from '../discovery/discover-methods.js';
import type { HandlerMark, HandlerMarks } from '../discovery/handler-marks.js';
import { logger } from '../logging/session.logger.js';
import type { SessionHandlerContext } from '../telemetry/channels.js';
import type { SessionTelemetry } from '../telemetry/session-telemetry.js';
import { EventHandlingError } from './event-handling.errors.js';
import { type DispatchOptions, HandlerDispatcher } from './handler.dispatcher.js';

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

/** Calls the methods of this application that a decorator marks to handle events by their names. */
export abstract class NamedEventDispatcher<Event> extends HandlerDispatcher {
  #handlers: readonly NamedEventHandler[] | undefined;
  #names: { readonly group: readonly string[]; readonly broadcast: readonly string[] } | undefined;

  constructor(
    private readonly kind: HandledKind<Event>,
    private readonly discovery: DiscoveryService,
    private readonly scanner: MetadataScanner,
    telemetry: SessionTelemetry | undefined,
  ) {
    super(kind.what, telemetry);
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

  /**
   * Calls the handlers of an event at once, except those for broadcasts and those that are `done`.
   * @throws EventHandlingError that names the failed handlers; another error after `giveUp()`
   */
  dispatch(event: Event, { done = [] }: DispatchOptions = {}): Promise<void> {
    return this.run(async () => {
      const { failed, called } = await this.#call(event, false, done);
      if (failed.length > 0) throw new EventHandlingError(this.kind.shown(event), failed, called);
    });
  }

  /** Calls the handlers for broadcasts. It only logs a failure. */
  broadcast(event: Event): Promise<void> {
    return this.run(() => this.#call(event, true).then(() => undefined)).catch(() => undefined);
  }

  /** Broadcasts were missed. */
  async reportGap({ since }: { readonly since: number }): Promise<void> {
    const from = new Date(since).toISOString();
    const { marks, what } = this.kind;
    logger.warn(`Handlers of ${marks.decorator} with \`broadcast\` may have missed ${what} that came after ${from}`);
  }

  protected explore(): void {
    void this.#explored;
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

  async #call(event: Event, broadcast: boolean, done: readonly string[] = []) {
    const { nameOf, shown, contextOf } = this.kind;
    const wanted = nameOf(event);
    const handles = (each: HandledName) => each.name === wanted && each.broadcast === broadcast;
    const handlers = this.#explored.filter(({ name, handled }) => handled.some(handles) && !done.includes(name));
    const failed = await this.callAll(handlers, shown(event), ({ name: handler, call }) =>
      this.observed(
        () => call(event),
        () => ({ handler, broadcast, ...contextOf(event) }),
      ),
    );
    return { failed, called: handlers.map(({ name }) => name) };
  }
}

function namesOf(handlers: readonly NamedEventHandler[], broadcast: boolean): readonly string[] {
  const wanted = handlers.flatMap(({ handled }) => handled).filter((each) => each.broadcast === broadcast);
  return [...new Set(wanted.map(({ name }) => name))].toSorted();
}
