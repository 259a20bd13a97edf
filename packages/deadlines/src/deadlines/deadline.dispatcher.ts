import {
  Inject,
  Injectable,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleInit,
  Optional,
} from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import {
  assertToldApart,
  type BoundMethod,
  callHandler,
  discoverMethods,
  type DispatchOptions,
  logger,
  RunningHandlers,
  SESSION_TELEMETRY,
  type SessionTelemetry,
  succeededOf,
  traced,
} from '@nest-session/core/internal';
import { eventChannel } from '@nest-session/core/telemetry';
import { DeadlineHandlingError } from './deadline.errors.js';
import type { DeadlineEvent } from './deadline-event.js';
import { type HandledDeadline, handledDeadlines } from './on-deadline.decorator.js';

/** A method with `@OnDeadline`, bound to its instance. */
interface DeadlineHandler extends BoundMethod {
  readonly handled: readonly HandledDeadline[];
}

/**
 * Calls the `@OnDeadline` methods of this application. It calls and awaits each on its own, logs one that fails, and
 * keeps no record: the caller decides whether to retry.
 */
@Injectable()
export class DeadlineDispatcher implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown {
  readonly #running: RunningHandlers;
  #handlers: readonly DeadlineHandler[] | undefined;
  #names: { readonly group: readonly string[]; readonly broadcast: readonly string[] } | undefined;
  #bootstrapped!: () => void;

  constructor(
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(MetadataScanner) private readonly scanner: MetadataScanner,
    @Optional() @Inject(SESSION_TELEMETRY) private readonly telemetry?: SessionTelemetry,
  ) {
    this.#running = new RunningHandlers('deadlines', new Promise((resolve) => (this.#bootstrapped = resolve)));
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

  /** The names of the deadlines that the group's handlers want or, with `broadcast`, that broadcast handlers want. */
  wantedTypes({ broadcast = false }: { readonly broadcast?: boolean } = {}): readonly string[] {
    return broadcast ? this.#wanted.broadcast : this.#wanted.group;
  }

  /** Resolves when the application is bootstrapped and handlers can be called. */
  ready(): Promise<void> {
    return this.#running.ready();
  }

  /**
   * Calls the handlers of a deadline at once, except those for broadcasts and those that are `done`.
   * @throws DeadlineHandlingError that names the failed handlers; another error after `giveUp()`
   */
  dispatch(event: DeadlineEvent, { done = [] }: DispatchOptions = {}): Promise<void> {
    return this.#running.run(async () => {
      const handlers = this.#handlersOf(event, false).filter(({ name }) => !done.includes(name));
      const failed = await this.#callAll(handlers, event, false);
      if (failed.length > 0)
        throw new DeadlineHandlingError(shownDeadline(event), failed, succeededOf(handlers, failed));
    });
  }

  /** Calls the handlers for broadcasts. It only logs a failure. */
  broadcast(event: DeadlineEvent): Promise<void> {
    const work = () => this.#callAll(this.#handlersOf(event, true), event, true).then(() => undefined);
    return this.#running.run(work).catch(() => undefined);
  }

  /** Broadcasts were missed. */
  async reportGap({ since }: { readonly since: number }): Promise<void> {
    const from = new Date(since).toISOString();
    logger.warn(`Handlers of @OnDeadline with \`broadcast\` may have missed deadlines that came after ${from}`);
  }

  /** Tells the telemetry that a deadline has become a dead letter because of this handler. */
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

  get #explored(): readonly DeadlineHandler[] {
    return (this.#handlers ??= this.#explore());
  }

  #explore(): readonly DeadlineHandler[] {
    const handlers = [...discoverMethods(this.discovery, this.scanner, 'DeadlineModule')].flatMap(
      ({ method, bind }) => {
        const handled = handledDeadlines(method);
        return handled.length > 0 ? [{ ...bind('@OnDeadline'), handled }] : [];
      },
    );
    const namesIn = ({ handled }: DeadlineHandler) =>
      handled.filter(({ broadcast }) => !broadcast).map(({ name }) => name);
    assertToldApart(
      handlers.map((each) => ({ name: each.name, module: each.module, events: namesIn(each) })),
      'DeadlineModule',
    );
    return handlers;
  }

  /** Asked for with each deadline. */
  get #wanted() {
    return (this.#names ??= { group: namesOf(this.#explored, false), broadcast: namesOf(this.#explored, true) });
  }

  #handlersOf(event: DeadlineEvent, broadcast: boolean): DeadlineHandler[] {
    const handles = (each: HandledDeadline) => each.name === event.name && each.broadcast === broadcast;
    return this.#explored.filter(({ handled }) => handled.some(handles));
  }

  async #callAll(handlers: readonly DeadlineHandler[], event: DeadlineEvent, broadcast: boolean) {
    const what = shownDeadline(event);
    const results = await Promise.all(
      handlers.map((each) => callHandler(each.name, what, () => this.#run(each, event, broadcast))),
    );
    return results.filter((result) => result !== undefined);
  }

  #run({ name: handler, call }: DeadlineHandler, event: DeadlineEvent, broadcast: boolean): unknown {
    const { telemetry } = this;
    if (!telemetry && !eventChannel.hasSubscribers) return call(event);
    const { id: eventId, name: deadline, at, attempt, traceparent } = event;
    const context = { handler, type: 'deadline', deadline, eventId, at, attempt, broadcast, traceparent };
    const run = () => call(event);
    return traced(eventChannel, context, () => (telemetry ? telemetry.runHandler(run, context) : run()));
  }
}

function namesOf(handlers: readonly DeadlineHandler[], broadcast: boolean): readonly string[] {
  const wanted = handlers.flatMap(({ handled }) => handled).filter((each) => each.broadcast === broadcast);
  return [...new Set(wanted.map(({ name }) => name))].toSorted();
}

/** A deadline as log lines name it: without its key, which may be a name or an address. */
export function shownDeadline({ name, id }: Pick<DeadlineEvent, 'name' | 'id'>): string {
  return `deadline ${JSON.stringify(name)} (${id})`;
}
