import { setTimeout as pause } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { PollingLoop, type SessionEventDispatcher, SessionEventHandlingError } from '@nest-session/core/store';
import { EVENT_RULES, SESSION_EVENT_DISPATCHER } from '../configuration/redis-session.tokens.js';
import type { PendingEvent } from './pending-event.js';
import { ConcurrencyLimiter } from './concurrency.limiter.js';
import { ConsumerGroupMember, type Failure } from './consumer-group-member.js';
import { SessionEventLoader } from './session-event.loader.js';
import { nameOf, type StreamEntry } from './stream-entry.js';
import { logger } from '../logging/redis-session.logger.js';

/** Milliseconds. */
export interface ConsumerOptions {
  /** Entries handled at a time. */
  readonly concurrency: number;
  /** How often to look for entries that are due again, and for those of instances that have died. */
  readonly pollInterval: number;
}

const PAUSE_AFTER_ERROR = 500;
// An event whose handling has ended its instance so many times will end the next one, too.
const MOST_ABANDONED = 5;
const LONGEST_REASON = 1000;

/**
 * Reads the events of its group and has them handled: first attempts in recorded order of start, and before retries. An
 * entry is acknowledged when all of its handlers have succeeded. When one fails the entry is tried again later, by any
 * instance of the group, and in the end put among the dead letters; when the instance dies, another takes it over after
 * the lease. Handlers run at least once, and without faults exactly once.
 */
@Injectable()
export class SessionEventConsumer {
  readonly #slots: ConcurrencyLimiter;
  readonly #renewals: PollingLoop;
  readonly #stopping = new AbortController();
  #ended: Promise<void> = Promise.resolve();
  #joined = false;
  /** Not by the clock, which may be set back. */
  #nextPoll = 0;
  /** Since it last looked for entries to begin. */
  readonly #acknowledged = new Set<string>();

  constructor(
    @Inject(ConsumerGroupMember) private readonly group: ConsumerGroupMember,
    @Inject(SESSION_EVENT_DISPATCHER) private readonly dispatcher: SessionEventDispatcher,
    @Inject(SessionEventLoader) private readonly loader: SessionEventLoader,
    @Inject(EVENT_RULES) private readonly options: ConsumerOptions,
  ) {
    this.#slots = new ConcurrencyLimiter(options.concurrency);
    // Three times per lease: a renewal that is late must not cost it.
    this.#renewals = new PollingLoop('The renewal of leases on events', group.rules.lease / 3, () =>
      this.group.renew(this.#slots.entries),
    );
  }

  start(): void {
    void this.#run();
  }

  /**
   * No entry is begun any more. What was read and not begun is left to the other instances at once, and the rest when
   * the handlers that run have finished, or the dispatcher has given them up.
   */
  stop(): void {
    if (this.#stopping.signal.aborted) return;
    this.#stopping.abort();
    if (this.#joined) this.#ended = this.#end();
  }

  /** Resolves when that has happened, and this instance has left its group. */
  drain(): Promise<void> {
    return this.#ended;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    // An application that fails while it starts is closed without ever having been ready.
    await Promise.race([this.dispatcher.ready(), aborted(signal)]);
    // Without handlers it would take events from the instances that have some.
    if (signal.aborted || !this.dispatcher.hasHandlers) return;
    let failed = false;
    while (!signal.aborted) {
      try {
        await this.#pass();
        failed = false;
      } catch (error) {
        if (signal.aborted) return;
        if (!failed) logger.error(`Events cannot be read, trying again: ${String(error)}`);
        failed = true;
        await pause(PAUSE_AFTER_ERROR, undefined, { signal }).catch(() => undefined);
      }
    }
  }

  /** Begins what nobody has had, then what is to be taken over, each as far as slots are free. */
  async #pass(): Promise<void> {
    const { signal } = this.#stopping;
    await this.#join();
    await this.#slots.untilFree(signal);
    this.#acknowledged.clear();
    const untilPoll = this.#nextPoll - performance.now();
    // BLOCK 0 would be for ever.
    for (const delivery of await this.group.read(this.#slots.free, Math.max(1, Math.ceil(untilPoll)))) {
      this.#begin(delivery);
    }
    if (performance.now() < this.#nextPoll) return;
    await this.#slots.untilFree(signal);
    const room = this.#slots.freeForRetries;
    const taken = room > 0 ? await this.group.claimEvents(room, signal) : [];
    taken.forEach((delivery) => this.#begin(delivery));
    const isMoreLeft = room > 0 && taken.length === room;
    if (!isMoreLeft) this.#nextPoll = performance.now() + this.options.pollInterval;
  }

  async #join(): Promise<void> {
    if (this.#joined) return;
    await this.group.ensure();
    if (this.#stopping.signal.aborted) return;
    this.#joined = true;
    this.#renewals.start();
    const own = this.dispatcher.handlerNames;
    const others = await this.group.register(own);
    if (!others) return;
    const list = (names: readonly string[]) => names.join(', ') || 'none';
    const onlyHere = own.filter((name) => !others.includes(name));
    const onlyElsewhere = others.filter((name) => !own.includes(name));
    logger.warn(
      `Another instance of the group ${this.group.name} has other handlers: each event goes to one instance and only ` +
        `to its handlers. Only here: ${list(onlyHere)}; only there: ${list(onlyElsewhere)}. ` +
        'Applications with different handlers need different values of `events.group`.',
    );
  }

  #begin(delivery: PendingEvent): void {
    const { entry, redelivered } = delivery;
    if (this.#stopping.signal.aborted || this.#isOwn(entry)) return;
    this.#slots.begin(entry, redelivered, () =>
      this.#handle(delivery).catch((error: unknown) => {
        // Of what was left to others when this instance stopped, nobody waits to hear.
        if (!this.#stopping.signal.aborted)
          logger.warn(`Event ${nameOf(entry)} could not be settled and is handled again: ${String(error)}`);
      }),
    );
  }

  /** Whether this instance took an entry over from itself: it was only slow, and may have finished while it asked. */
  #isOwn(entry: StreamEntry): boolean {
    return this.#slots.has(entry) || this.#acknowledged.has(nameOf(entry));
  }

  async #handle(delivery: PendingEvent): Promise<void> {
    const { entry, failures } = delivery;
    const failure = await this.#attempt(delivery);
    if (!failure) {
      await this.group.acknowledge(entry);
      this.#acknowledged.add(nameOf(entry));
      return;
    }
    switch (await this.group.fail(entry, failure)) {
      case 'retry': {
        const attempt = `attempt ${failures + 1} of ${this.group.rules.attempts}`;
        logger.warn(`Event ${nameOf(entry)} has failed at ${attempt} and is tried again`);
        break;
      }
      case 'dead':
        logger.error(`Event ${nameOf(entry)} is a dead letter now: ${failure.reason}`);
    }
  }

  /** Resolves to undefined when nothing is left to do with the entry. */
  async #attempt({ entry, redelivered, abandoned, done }: PendingEvent): Promise<Failure | undefined> {
    if (!this.group.concerns(entry)) return undefined;
    if (abandoned >= MOST_ABANDONED) {
      return { done, reason: `${abandoned} instances ended while they handled it`, isFinal: true };
    }
    const event = await this.loader.load(entry);
    if (!event) {
      logger.warn(`Entry ${nameOf(entry)} is of no known kind and is passed over`);
      return undefined;
    }
    try {
      await this.dispatcher.dispatch(event, { redelivered, done });
      return undefined;
    } catch (error) {
      if (!(error instanceof SessionEventHandlingError)) throw error;
      return { done: [...done, ...error.succeeded], reason: reasonOf(error) };
    }
  }

  async #end(): Promise<void> {
    // What cannot be handed over, because Redis has gone, is taken over after the lease.
    const leave = (kept: readonly StreamEntry[]) => this.group.leave(kept).catch(() => undefined);
    const early = leave(this.#slots.entries);
    await this.#slots.untilIdle();
    await this.#renewals.stop();
    await early;
    await leave([]);
  }
}

function reasonOf({ failed }: SessionEventHandlingError): string {
  const reason = failed.map(({ name, cause }) => `${name}: ${String(cause)}`).join('; ');
  return reason.slice(0, LONGEST_REASON);
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
