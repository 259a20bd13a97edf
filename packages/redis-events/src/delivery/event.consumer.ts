import { once } from 'node:events';
import { Inject, Injectable } from '@nestjs/common';
import { EventHandlingError, reasonOf, shownError, shownText } from '@nest-session/core/internal';
import { PollingLoop } from '@nest-session/core/store';
import { InjectConnection } from '../connection/redis-connections.js';
import type { RedisNodes } from '../connection/redis-nodes.js';
import { untilSound } from '../connection/server-faults.js';
import { FailureLog, logger } from '../logging/failure.log.js';
import { EVENT_RULES, type EventRules } from '../configuration/event-rules.js';
import { fieldOf, nameOf, type StreamEntry } from '../scripts/stream/stream-entry.js';
import { type BackgroundService, repeatPasses, settledWithin } from '../timing/background-service.js';
import { ConcurrencyLimiter } from './concurrency.limiter.js';
import { ConsumerGroupMember, type Failure, type PendingEvent } from './consumer-group-member.js';
import { EventLoader, EventProducer } from './event-producer.js';

// Milliseconds. While retries have all their places, others may be due. Most handlers have finished by then.
const PAUSE_WHILE_RETRIES_RUN = 25;
// Each instance takes events over by its own lease: during a deployment, others may have the default of 30 s.
const LONGEST_RENEWAL = 10_000;

/** Calls the handlers of its group, at least once: new events in recorded order, before retries of any instance. */
@Injectable()
export class EventConsumer<Event> implements BackgroundService {
  readonly #limiter: ConcurrencyLimiter;
  readonly #renewals: PollingLoop;
  readonly #stopping = new AbortController();
  readonly #failures = new FailureLog('Events cannot be read, retrying', 'Events are read again');
  readonly #unsettled = new FailureLog(
    'The results of handlers cannot be recorded, retrying',
    'The results of handlers are recorded again',
  );
  #ended: Promise<void> = Promise.resolve();
  #joined = false;
  /** When to tell Redis again what its handlers want: monotonic time. */
  #nextRegistration = 0;
  #others: readonly string[] | undefined;
  #nextPoll = 0;
  readonly #acknowledged = new Set<string>();

  constructor(
    @Inject(ConsumerGroupMember) private readonly group: ConsumerGroupMember,
    @Inject(EventProducer) private readonly producer: EventProducer<Event>,
    @Inject(EventLoader) private readonly loader: EventLoader<Event>,
    @Inject(EVENT_RULES) private readonly options: EventRules,
    @InjectConnection('request') private readonly nodes: Pick<RedisNodes, 'onOpen'>,
  ) {
    this.#limiter = new ConcurrencyLimiter(options.concurrency, { hasOtherNodes: group.hasSeveralPartitions });
    const renew = () => group.renew(this.#limiter.entries);
    this.#renewals = leaseRenewal(group.rules.lease, renew, this.#stopping.signal);
  }

  /** Resolves when the events that its handlers want are recorded, with their data. */
  async start(): Promise<void> {
    if (!this.options.consume) return;
    // The application may cause events before this instance has joined its group.
    const types = this.#handlers.wantedTypes();
    const told = types.length > 0 ? this.group.want(types).catch(() => undefined) : undefined;
    void this.#run();
    // Redis may come back with older data, where the group does not want them.
    this.nodes.onOpen((client) => client.on('ready', () => (this.#nextRegistration = 0)));
    await told;
  }

  /** Begins no more entries. Leaves the group when the handlers that run have finished, or were given up. */
  stop(): Promise<void> {
    if (this.#stopping.signal.aborted) return this.#ended;
    this.#stopping.abort();
    const silent = this.group.stopReading();
    void this.#limitHandlers();
    if (this.#joined) this.#ended = this.#end(silent);
    return this.#ended;
  }

  get #handlers(): EventProducer<Event>['handlers'] {
    return this.producer.handlers;
  }

  /** The time begins now, not when the requests in flight have finished, which may take long. */
  async #limitHandlers(): Promise<void> {
    if (await settledWithin(this.options.shutdownTimeout, this.#handlers.idle())) return;
    logger.warn(
      'Handlers of events have not finished within `events.shutdownTimeout`: other instances will handle their events again',
    );
    this.#handlers.giveUp();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    // An application whose start fails is closed without becoming ready.
    await Promise.race([this.#handlers.ready(), signal.aborted || once(signal, 'abort')]);
    // Redis may come back without what this instance has told.
    const abstain = () => void untilSound(() => this.group.abstain(), signal).catch(() => undefined);
    if (!this.#handlers.hasHandlers) this.nodes.onOpen((client) => client.on('ready', abstain));
    await repeatPasses(() => this.#pass(), signal, this.#failures);
  }

  async #pass(): Promise<boolean> {
    if (!this.#handlers.hasHandlers) return this.#abstain();
    await this.#join();
    try {
      await this.#beginNew();
    } finally {
      // Also while one partition cannot be read.
      await this.#beginRetries();
    }
    return this.group.isSettled;
  }

  /** Without handlers it would take events away from instances that have some. */
  async #abstain(): Promise<false> {
    await this.group.abstain();
    if (!this.#stopping.signal.aborted) await once(this.#stopping.signal, 'abort');
    return false;
  }

  async #beginNew(): Promise<void> {
    await this.#limiter.untilFree(this.#stopping.signal);
    const { free } = this.#limiter;
    // An event whose node replies at last has taken the place since.
    if (free === 0) return;
    this.#acknowledged.clear();
    const untilPoll = this.#nextPoll - performance.now();
    for (const event of await this.group.read(free, Math.max(1, Math.ceil(untilPoll)))) this.#begin(event);
  }

  async #beginRetries(): Promise<void> {
    const { signal } = this.#stopping;
    if (performance.now() < this.#nextPoll) return;
    await this.#limiter.untilFree(signal);
    const room = this.#limiter.freeForRetries;
    const pickedUp = room > 0 ? await this.group.pickUpEvents(room, signal) : [];
    pickedUp.forEach((event) => this.#begin(event));
    if (room === 0) this.#nextPoll = performance.now() + PAUSE_WHILE_RETRIES_RUN;
    // As many as there was room for: more may be left.
    // Another instance polls first each time: one that lacks the handler of an event must not keep it from the others.
    else if (pickedUp.length < room)
      this.#nextPoll = performance.now() + this.options.pollInterval * (1 + Math.random() / 2);
  }

  async #join(): Promise<void> {
    if (!this.#joined) {
      await this.group.ensure();
      if (this.#stopping.signal.aborted) return;
      this.#joined = true;
      this.#renewals.start();
      await this.#register();
    } else if (performance.now() >= this.#nextRegistration) {
      // The failure is logged, and the events are handled all the same.
      await this.#register().catch(() => undefined);
    }
  }

  async #register(): Promise<void> {
    const own = this.#handlers.handlerNames;
    const known = this.#others;
    // Before the call: Redis may come back again during it.
    this.#nextRegistration = Infinity;
    try {
      this.#others = await this.group.register({ names: own, types: this.#handlers.wantedTypes() });
    } catch (error) {
      this.#nextRegistration = 0;
      throw error;
    }
    const others = this.#others;
    // What the others alone want, the group has to forget when they have gone.
    if (others) this.#nextRegistration = Math.min(this.#nextRegistration, performance.now() + this.options.wishRenewal);
    if (!others || [known, own].some((names) => String(names) === String(others))) return;
    const list = (names: readonly string[]) => names.map(shownText).join(', ') || 'none';
    const onlyHere = own.filter((name) => !others.includes(name));
    const onlyElsewhere = others.filter((name) => !own.includes(name));
    logger.warn(
      `Another instance of the group ${JSON.stringify(this.group.name)} has other handlers, and each event goes to the ` +
        `handlers of one instance only. Only here: ${list(onlyHere)}; only there: ${list(onlyElsewhere)}. ` +
        'Give applications with different handlers different values of `events.group`',
    );
  }

  #begin(event: PendingEvent): void {
    const { entry, redelivered } = event;
    // Where its renewal was late, it picks up an entry of its own, whose handlers may have finished since.
    const isHandledHere = this.#limiter.has(entry) || this.#acknowledged.has(nameOf(entry));
    if (this.#stopping.signal.aborted || isHandledHere) return;
    this.#limiter.begin(entry, redelivered, () =>
      this.#handle(event).catch((error: unknown) => {
        // After stop(), the entry was released: another instance handles it.
        if (!this.#stopping.signal.aborted)
          logger.warn(
            `Event ${this.producer.shownIdOf(entry)} could not be settled and will be handled again: ${shownError(error)}`,
          );
      }),
    );
  }

  async #handle(event: PendingEvent): Promise<void> {
    const { entry, failures } = event;
    const failure = await this.#attempt(event);
    if (failure === 'passed') return;
    if (!failure) {
      await this.#settled(() => this.group.acknowledge(entry));
      this.#acknowledged.add(nameOf(entry));
      return;
    }
    switch (await this.#settled(() => this.group.fail(entry, failure))) {
      case 'retry': {
        const attempt = `attempt ${failures + 1} of ${this.group.rules.attempts}`;
        logger.warn(`Event ${this.producer.shownIdOf(entry)} failed in ${attempt} and will be retried`);
        break;
      }
      case 'dead':
        logger.error(
          `Event ${this.producer.shownIdOf(entry)} is a dead letter now, see ${this.producer.groupsClass}: ${JSON.stringify(failure.reason)}`,
        );
        this.#handlers.reportDeadLetter(fieldOf(entry, 'type') ?? '', failure.handler ?? '');
    }
  }

  /** Undefined: the entry can be acknowledged; `passed`: others have it now. */
  async #attempt(pending: PendingEvent): Promise<Failure | 'passed' | undefined> {
    const { entry, redelivered, failures, done, abandoned } = pending;
    if (!this.group.concerns(entry)) return undefined;
    if (abandoned >= this.group.rules.mostAbandoned) {
      return { done, reason: `${abandoned} instances ended while they handled it`, isFinal: true };
    }
    const event = await this.#settled(() => this.loader.load(entry, failures + 1));
    if (!event) {
      logger.warn(`Entry ${nameOf(entry)} is of a kind that this version does not know, and is skipped`);
      return undefined;
    }
    const missing = this.producer.missingHandlerOf(event);
    if (missing !== undefined) {
      const word = await this.#settled(() => this.group.passOn(entry, missing));
      return word === 'unwanted' ? undefined : 'passed';
    }
    try {
      await this.#limiter.run(entry, () => {
        // Its data came during the shutdown, which waits only for handlers that have begun: left to another instance.
        this.#stopping.signal.throwIfAborted();
        return this.#handlers.dispatch(event, { redelivered, done });
      });
      return undefined;
    } catch (error) {
      if (!(error instanceof EventHandlingError)) throw error;
      const { succeeded, failed } = error;
      return { done: [...done, ...succeeded], reason: reasonOf(failed), handler: failed[0]?.name };
    }
  }

  /** Keeps an entry and its lease while Redis refuses what is asked: else its handlers would run once more. */
  async #settled<T>(call: () => Promise<T>): Promise<T> {
    const reply = await untilSound(call, this.#stopping.signal, (error) => this.#unsettled.failed(error));
    this.#unsettled.succeeded();
    return reply;
  }

  async #end(silent: Promise<void>): Promise<void> {
    // During an outage nothing can be released; then other instances take the entries over after the lease.
    const leave = (kept: readonly StreamEntry[]) => this.group.leave(kept).catch(() => undefined);
    const early = leave(this.#limiter.entries);
    await this.#limiter.untilIdle();
    await this.#renewals.stop();
    await early;
    // A read that was sent before the first leave() may make this instance a member again, with what that read found.
    await silent;
    await leave([]);
  }
}

export function leaseRenewal(lease: number, renew: () => Promise<void>, signal: AbortSignal): PollingLoop {
  // Three times per lease, so that one late renewal does not lose it.
  const interval = Math.min(lease / 3, LONGEST_RENEWAL);
  return new PollingLoop('The renewal of leases on events', interval, () => untilSound(renew, signal));
}
