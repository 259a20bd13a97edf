import { AsyncLocalStorage } from 'node:async_hooks';
import type { OnApplicationBootstrap, OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import type { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { isObservable, lastValueFrom } from 'rxjs';
import { assertToldApart, type BoundMethod, discoverMethods } from '../discovery/discover-methods.js';
import type { HandlerMark, HandlerMarks } from '../discovery/handler-marks.js';
import { logger } from '../logging/session.logger.js';
import { shownStack, textOf } from '../logging/shown-error.js';
import { eventChannel, type SessionHandlerContext, traced } from '../telemetry/channels.js';
import type { SessionTelemetry } from '../telemetry/session-telemetry.js';

/** An event handler that threw or rejected. */
export interface FailedHandler {
  /** `Class.method` */
  readonly name: string;
  /** The error that it threw. */
  readonly cause: unknown;
}

/** `AggregateError`, with a type that also applications can compile whose `lib` is older than ES2021. */
const ErrorOfSeveral: new (
  errors: Iterable<unknown>,
  message?: string,
) => Error & {
  /** What went wrong, one error after the other. */
  readonly errors: readonly unknown[];
} = AggregateError;

/** Thrown when some handlers of an event failed. */
export class EventHandlingError extends ErrorOfSeveral {
  override readonly name: string = 'EventHandlingError';
  /** The names of the handlers that succeeded, `Class.method`. */
  readonly succeeded: readonly string[];

  constructor(
    /** The event as log lines name it. */
    shownEvent: string,
    /** The handlers that failed, each with its cause. */
    readonly failed: readonly FailedHandler[],
    /** The names of the handlers that were called. */
    called: readonly string[],
  ) {
    super(
      failed.map(({ cause }) => cause),
      `${shownEvent} was not handled by ${failed.map(({ name }) => name).join(', ')}`,
    );
    this.succeeded = called.filter((name) => failed.every((each) => each.name !== name));
  }
}

/** The same for a session event. */
export class SessionEventHandlingError extends EventHandlingError {
  /** Always 'SessionEventHandlingError'. */
  override readonly name = 'SessionEventHandlingError';
}

/** How often an event is tried whose handlers fail, and after how many milliseconds again: in every store. */
export const RETRIES = { attempts: 10, firstBackOff: 1000, longestBackOff: 300_000 } as const;

/** Milliseconds until the next attempt: doubled with each one, as in retry-or-dead-letter.lua of redis-events. */
export function backOffAfter(attempt: number): number {
  return Math.min(RETRIES.firstBackOff * 2 ** (attempt - 1), RETRIES.longestBackOff);
}

const LONGEST_REASON = 1000;

export function reasonOf(failed: readonly { readonly name: string; readonly cause: unknown }[]): string {
  const reason = failed.map(({ name, cause }) => `${name}: ${textOf(cause)}`).join('; ');
  return reason.slice(0, LONGEST_REASON);
}

export interface HandlerKind<Event, Mark extends HandlerMark> {
  readonly what: string;
  readonly module: string;
  readonly marks: Pick<HandlerMarks<Mark>, 'of' | 'decorator'>;
  typesOf(mark: Mark): readonly string[];
  handles(mark: Mark, event: Event): boolean;
  shown(event: Event): string;
  contextOf(event: Event): Omit<SessionHandlerContext, 'handler' | 'broadcast'>;
  /** `called`: the names of all handlers that were called. */
  failure(event: Event, failed: readonly FailedHandler[], called: readonly string[]): EventHandlingError;
}

/** Tells `dispatch()` how to treat an event that was dispatched before. */
export interface DispatchOptions {
  /** Whether any instance dispatched the event before. EventEmitter listeners do not get it again. */
  readonly redelivered?: boolean;
  /** The names of the handlers that already succeeded. They are not called again. */
  readonly done?: readonly string[];
}

interface ExploredHandler<Mark> extends BoundMethod {
  readonly handled: readonly Mark[];
}

/**
 * Calls the methods of this application that a decorator marks to handle events. It calls and awaits each handler on
 * its own, logs one that fails, and keeps no record: the caller decides whether to retry the failed ones. A shutdown
 * waits for those that run.
 */
export abstract class HandlerDispatcher<Event, Mark extends HandlerMark>
  implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown
{
  /** The running work, each with a function that stops the wait for it. */
  readonly #running = new Map<Promise<void>, (reason: Error) => void>();
  readonly #ready: Promise<void>;
  #bootstrapped!: () => void;
  #givenUp: Error | undefined;
  #isReady = false;
  #handlers: readonly ExploredHandler<Mark>[] | undefined;
  #types: { readonly group: readonly string[]; readonly broadcast: readonly string[] } | undefined;
  /** A request may have caused an event, but its session is not that of a handler. */
  readonly #outside = AsyncLocalStorage.snapshot();

  /** @internal `prepare`: what is left to do when the application is bootstrapped, before handlers can be called. */
  constructor(
    private readonly kind: HandlerKind<Event, Mark>,
    private readonly discovery: DiscoveryService,
    private readonly scanner: MetadataScanner,
    private readonly telemetry: SessionTelemetry | undefined,
    prepare?: () => Promise<void>,
  ) {
    this.#ready = new Promise<void>((resolve) => (this.#bootstrapped = resolve)).then(prepare).then(() => {
      this.#isReady = true;
    });
  }

  /** Whether this application has a handler that is not for broadcasts. */
  get hasHandlers(): boolean {
    return this.handlerNames.length > 0;
  }

  /** The names of those handlers, as `Class.method`, in alphabetical order. */
  get handlerNames(): readonly string[] {
    const own = this.#explored.filter(({ handled }) => handled.some(({ broadcast }) => !broadcast));
    return [...new Set(own.map(({ name }) => name))].toSorted();
  }

  /** Whether this application has a method for broadcast events. */
  get hasBroadcastHandlers(): boolean {
    return this.#explored.some(({ handled }) => handled.some(({ broadcast }) => broadcast));
  }

  /** The types of events that the group's handlers want or, with `broadcast`, the broadcast handlers. */
  wantedTypes({ broadcast = false }: { readonly broadcast?: boolean } = {}): readonly string[] {
    // Asked for with each event.
    this.#types ??= { group: this.#typesOf(false), broadcast: this.#typesOf(true) };
    return broadcast ? this.#types.broadcast : this.#types.group;
  }

  /** Resolves when the application is bootstrapped and all handlers can be called. Until then it stays pending. */
  ready(): Promise<void> {
    return this.#ready;
  }

  /**
   * Calls all handlers of the event at once, except broadcast handlers, as soon as the application is ready. Resolves
   * when they have finished. The handlers of two events start in the order of the calls.
   * @throws EventHandlingError that names the failed handlers; another error after `giveUp()`
   */
  dispatch(event: Event, options: DispatchOptions = {}): Promise<void> {
    return this.run(async () => {
      this.onDispatch(event, options);
      const { failed, called } = await this.#call(event, false, options.done);
      if (failed.length > 0) throw this.kind.failure(event, failed, called);
    });
  }

  /** Calls the broadcast handlers at once, as soon as the application is ready. It only logs a failure. */
  broadcast(event: Event): Promise<void> {
    return this.run(() => this.#call(event, true).then(() => undefined)).catch(() => undefined);
  }

  /** Broadcast events that were recorded after `since`, in epoch milliseconds, were missed. */
  abstract reportGap(gap: { readonly since: number }): Promise<void>;

  /** Tells the telemetry that an event of this type has become a dead letter because of this handler. */
  reportDeadLetter(type: string, handler: string): void {
    this.telemetry?.deadLettered(type, handler);
  }

  /** Resolves when no handler and no listener of the EventEmitter is running, or after `giveUp()`. */
  async idle(): Promise<void> {
    // Before the application is ready, no handler runs, and dispatched events may never start.
    while (this.#isReady && this.#running.size > 0) await Promise.allSettled(this.#running.keys());
  }

  /** Stops waiting for handlers, and rejects every dispatch that has not finished. */
  giveUp(): void {
    this.#givenUp = new Error(`The application shut down before all ${this.kind.what} were handled`);
    for (const reject of this.#running.values()) reject(this.#givenUp);
  }

  /** Called by Nest. @throws InvalidSessionOptionsError for a handler of a request-scoped provider, and the like */
  onModuleInit(): void {
    // To fail the start, not the first event.
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

  /** @internal What else happens with an event that is dispatched, before its handlers are called. */
  protected onDispatch(_event: Event, _options: DispatchOptions): void {}

  /** @internal Begins as soon as handlers can be called. Settles as the work does, or rejects by `giveUp()`. */
  protected run(work: () => Promise<void>): Promise<void> {
    return this.track(this.#ready.then(() => this.#outside(work)));
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

  /** @internal The methods of the application. */
  protected discovered() {
    return discoverMethods(this.discovery, this.scanner, this.kind.module);
  }

  get #explored(): readonly ExploredHandler<Mark>[] {
    return (this.#handlers ??= this.#explore());
  }

  #explore(): readonly ExploredHandler<Mark>[] {
    const { module, marks, typesOf } = this.kind;
    const handlers = [...this.discovered()].flatMap(({ method, bind }) => {
      const handled = marks.of(method);
      return handled.length > 0 ? [{ ...bind(marks.decorator), handled }] : [];
    });
    const recorded = handlers.map(({ name, module: owner, handled }) => ({
      name,
      module: owner,
      events: handled.filter(({ broadcast }) => !broadcast).flatMap(typesOf),
    }));
    assertToldApart(recorded, module);
    return handlers;
  }

  #typesOf(broadcast: boolean): readonly string[] {
    const marks = this.#explored.flatMap(({ handled }) => handled).filter((each) => each.broadcast === broadcast);
    return [...new Set(marks.flatMap(this.kind.typesOf))].toSorted();
  }

  async #call(event: Event, broadcast: boolean, done: readonly string[] = []) {
    const { kind } = this;
    const handles = (mark: Mark) => mark.broadcast === broadcast && kind.handles(mark, event);
    const handlers = this.#explored.filter(({ name, handled }) => handled.some(handles) && !done.includes(name));
    const failed = await this.callAll(handlers, kind.shown(event), (handler) => this.#run(handler, event, broadcast));
    return { failed, called: handlers.map(({ name }) => name) };
  }

  #run({ name: handler, call }: BoundMethod, event: Event, broadcast: boolean): unknown {
    const { telemetry } = this;
    if (!telemetry && !eventChannel.hasSubscribers) return call(event);
    const context = { handler, broadcast, ...this.kind.contextOf(event) };
    const run = () => call(event);
    return traced(eventChannel, context, () => (telemetry ? telemetry.runHandler(run, context) : run()));
  }
}

export interface HandledName extends HandlerMark {
  readonly name: string;
}

export interface HandledKind<Event> extends Omit<HandlerKind<Event, HandledName>, 'typesOf' | 'handles' | 'failure'> {
  /** The name by which handlers want an event. */
  nameOf(event: Event): string;
}

export abstract class NamedEventDispatcher<Event> extends HandlerDispatcher<Event, HandledName> {
  constructor(
    private readonly named: HandledKind<Event>,
    discovery: DiscoveryService,
    scanner: MetadataScanner,
    telemetry: SessionTelemetry | undefined,
  ) {
    const kind: HandlerKind<Event, HandledName> = {
      ...named,
      typesOf: ({ name }) => [name],
      handles: ({ name }, event) => name === named.nameOf(event),
      failure: (event, failed, called) => new EventHandlingError(named.shown(event), failed, called),
    };
    super(kind, discovery, scanner, telemetry);
  }

  calls(marks: object): boolean {
    return this.named.marks === marks;
  }

  async reportGap({ since }: { readonly since: number }): Promise<void> {
    const from = new Date(since).toISOString();
    const { marks, what } = this.named;
    logger.warn(`Handlers of ${marks.decorator} with \`broadcast\` may have missed ${what} that came after ${from}`);
  }
}
