import { setTimeout as pause } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import type { AttributeSerializer, SessionEventDispatcher } from '@nest-session/core';
import type { Redis } from 'ioredis';
import type { SessionKeys } from '../keys/session.keys.js';
import type { SessionEventGroup } from './session-event.group.js';
import { sessionIdOf, type StreamEntry, toSessionEvent } from './session-event.mapper.js';

export interface ConsumerOptions {
  /** After how many milliseconds an unfinished entry is taken over, or tried again. */
  readonly lease: number;
  /** Entries handled at a time. */
  readonly concurrency: number;
}

const PAUSE_AFTER_ERROR = 500;
const LONGEST_WAIT = 5000;

/**
 * Reads the events of its group and has them handled, in recorded order of start. An entry is acknowledged when all of
 * its handlers have succeeded. When one fails, or the instance dies, the entry stays pending and is taken over after
 * the lease, by any instance of the group: handlers run at least once, and without faults exactly once.
 */
export class SessionEventConsumer {
  readonly #logger = new Logger('SessionEvents');
  /** Positions of the entries being handled here, so as not to take over what is only slow. */
  readonly #running = new Map<string, Promise<void>>();
  readonly #stopping = new AbortController();
  #joined = false;

  constructor(
    private readonly group: SessionEventGroup,
    private readonly dispatcher: SessionEventDispatcher,
    private readonly client: Redis,
    private readonly keys: SessionKeys,
    private readonly serializer: AttributeSerializer,
    private readonly options: ConsumerOptions,
  ) {}

  start(): void {
    void this.#run();
  }

  /** No entry is begun any more; one that arrives all the same stays pending, for others to take over. */
  stop(): void {
    this.#stopping.abort();
  }

  /** Resolves when the handlers that are running have finished and their entries are acknowledged. */
  async drain(): Promise<void> {
    await Promise.all(this.#running.values());
    if (this.#joined) await this.group.leave();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    // An application that fails while it starts is closed without ever having been ready.
    await Promise.race([this.dispatcher.ready(), aborted(signal)]);
    // Without handlers it would take events from the instances that have some.
    if (signal.aborted || !this.dispatcher.hasHandlers) return;
    // Not by the clock, which may be set back.
    let nextTakeOver = 0;
    let failed = false;
    while (!signal.aborted) {
      try {
        if (this.#free === 0) await Promise.race(this.#running.values());
        if (performance.now() >= nextTakeOver) {
          await this.#join();
          for (const entry of await this.group.takeOver(this.#free, this.options.lease)) this.#begin(entry, true);
          nextTakeOver = performance.now() + this.options.lease / 2;
        }
        if (this.#free > 0) {
          const patience = Math.min(LONGEST_WAIT, Math.ceil(this.options.lease / 2));
          for (const entry of await this.group.read(this.#free, patience)) this.#begin(entry, false);
        }
        failed = false;
      } catch (error) {
        if (signal.aborted) return;
        if (!failed) this.#logger.error(`Events cannot be read, trying again: ${String(error)}`);
        failed = true;
        await pause(PAUSE_AFTER_ERROR, undefined, { signal }).catch(() => undefined);
      }
    }
  }

  async #join(): Promise<void> {
    if (this.#joined) return;
    await this.group.ensure();
    this.#joined = true;
  }

  get #free(): number {
    return Math.max(0, this.options.concurrency - this.#running.size);
  }

  #begin(entry: StreamEntry, redelivered: boolean): void {
    const [position] = entry;
    if (this.#stopping.signal.aborted || this.#running.has(position)) return;
    const handling = this.#handle(entry, redelivered)
      // The dispatcher has said which handler failed and why; the entry stays pending and is tried again.
      .catch((error: unknown) => this.#logger.warn(`Event ${position} is tried again: ${String(error)}`))
      .finally(() => this.#running.delete(position));
    this.#running.set(position, handling);
  }

  async #handle(entry: StreamEntry, redelivered: boolean): Promise<void> {
    const sessionId = sessionIdOf(entry);
    const hash = sessionId === undefined ? {} : await this.client.hgetall(this.keys.session(sessionId));
    const event = toSessionEvent(entry, hash, this.serializer);
    if (event) await this.dispatcher.dispatch(event, { redelivered });
    else this.#logger.warn(`Entry ${entry[0]} of the events stream is of no known kind and is passed over`);
    await this.group.acknowledge(entry);
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
