import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import type { SessionEventDispatcher } from '@nest-session/core';
import type { Redis } from 'ioredis';
import type { SessionKeys } from '../keys/session.keys.js';
import type { EventStreamScripts } from '../scripts/event-stream.scripts.js';
import type { SessionEventLoader } from './session-event.loader.js';
import { groupOf, type StreamEntry } from './stream-entry.js';
import { timeOf } from './stream.position.js';

const BATCH_SIZE = 100;
// And so the longest until a gap is told of behind which nothing is recorded.
const LONGEST_WAIT = 1000;
const PAUSE_AFTER_ERROR = 500;

/**
 * Reads every event that is recorded from its start on, for the methods of this instance that are to hear of all of
 * them: in recorded order, one after the other. It belongs to no group, so nothing waits for it, and goes on where it
 * was after a lost connection. When events are gone that it has not read, it tells of the gap.
 */
export class SessionEventBroadcaster {
  readonly #logger = new Logger('SessionEvents');
  readonly #stopping = new AbortController();
  /** That of the last event that was delivered; undefined until Redis has told where the stream ends. */
  #position: string | undefined;

  constructor(
    /** Its own: it waits for events. */
    private readonly reader: Redis,
    private readonly scripts: EventStreamScripts,
    private readonly dispatcher: SessionEventDispatcher,
    private readonly loader: SessionEventLoader,
    private readonly keys: SessionKeys,
  ) {}

  /** Resolves when it will hear of whatever is recorded from now on; at once when there is nobody to hear of it. */
  async start(): Promise<void> {
    if (!this.dispatcher.hasBroadcastHandlers) return;
    const begun = this.#pass().catch(() => undefined);
    void begun.then(() => this.#run());
    await begun;
  }

  /** No event is delivered any more. The methods that run are waited for by the dispatcher. */
  stop(): void {
    this.#stopping.abort();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    // An application that fails while it starts is closed without ever having been ready.
    if (!signal.aborted) await Promise.race([this.dispatcher.ready(), once(signal, 'abort')]);
    let failed = false;
    while (!signal.aborted) {
      try {
        await this.#pass();
        failed = false;
      } catch (error) {
        if (signal.aborted) return;
        if (!failed) this.#logger.error(`Broadcast events cannot be read, trying again: ${String(error)}`);
        failed = true;
        await pause(PAUSE_AFTER_ERROR, undefined, { signal }).catch(() => undefined);
      }
    }
  }

  async #pass(): Promise<void> {
    const [word, reply] = await this.scripts.readEvents(this.#position, BATCH_SIZE);
    if (word === 'begin') this.#position = reply;
    else if (word === 'gap') await this.#skipTo(reply);
    else if (reply.length > 0) await this.#deliver(reply);
    else await this.#wait();
  }

  async #deliver(entries: readonly StreamEntry[]): Promise<void> {
    for (const entry of entries) {
      if (this.#stopping.signal.aborted) return;
      // One that was replayed for a group has been broadcast before.
      const event = groupOf(entry) === undefined ? await this.loader.load(entry) : undefined;
      if (event) await this.dispatcher.broadcast(event);
      this.#position = entry[0];
    }
  }

  async #skipTo(position: string): Promise<void> {
    const since = timeOf(this.#position!);
    this.#position = position;
    this.#logger.warn(
      `Broadcast events recorded after ${new Date(since).toISOString()} were missed: they are not in Redis any more`,
    );
    await this.dispatcher.reportGap({ since });
  }

  /** Until there is an event behind the position, or for a while. */
  async #wait(): Promise<void> {
    await this.reader.xread('COUNT', 1, 'BLOCK', LONGEST_WAIT, 'STREAMS', this.keys.events, this.#position!);
  }
}
