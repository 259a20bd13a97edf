import type { BoundMethod } from '../discovery/discover-methods.js';
import { logger } from '../logging/session.logger.js';
import { shownStack } from '../logging/shown-error.js';

const MOST_RUNNING = 16;
const MOST_WAITING = 1000;
const PATIENCE = 30_000;
/** How long a shutdown waits, in milliseconds: as long as that of the session events by default. */
const SHUTDOWN_PATIENCE = 10_000;

/** Calls a method with events that happen once. A slow or failing method delays and harms nothing else. */
export class HandlerQueue<Event> {
  readonly #waiting: Event[] = [];
  readonly #logged = new Set<string>();
  readonly #running = new Set<Promise<void>>();

  /** @param patience after so many milliseconds, a call that has not finished is logged */
  constructor(
    private readonly method: Pick<BoundMethod, 'name' | 'call'>,
    private readonly patience = PATIENCE,
  ) {}

  hear(event: Event): void {
    if (this.#running.size < MOST_RUNNING) this.#start(event);
    else if (this.#waiting.length < MOST_WAITING) this.#waiting.push(event);
    else this.#logOnce(MISSES);
  }

  /** Resolves when no call runs and none waits, or after `patience` milliseconds, which it logs. */
  async idle(patience = SHUTDOWN_PATIENCE): Promise<void> {
    if (this.#running.size === 0) return;
    let timer: NodeJS.Timeout | undefined;
    const isOver = new Promise((resolve) => (timer = setTimeout(resolve, patience, LATE)));
    if ((await Promise.race([this.#allDone(), isOver])) === LATE) this.#logOnce(LATE);
    clearTimeout(timer);
  }

  async #allDone(): Promise<void> {
    // A call that ends begins the next one.
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  #start(event: Event): void {
    const call = this.#call(event).finally(() => {
      this.#running.delete(call);
      const next = this.#waiting.shift();
      if (next) this.#start(next);
    });
    this.#running.add(call);
  }

  async #call(event: Event): Promise<void> {
    const timer = setTimeout(() => this.#logOnce(HANGS), this.patience).unref();
    try {
      // Let the request go on first.
      await Promise.resolve();
      await this.method.call(event);
    } catch (error) {
      this.#logOnce(FAILS, shownStack(error));
    } finally {
      clearTimeout(timer);
    }
  }

  #logOnce(sentence: string, stack?: string): void {
    if (this.#logged.has(sentence)) return;
    this.#logged.add(sentence);
    logger.error(`${this.method.name} ${sentence}`, stack);
  }
}

const FAILS = 'failed to handle a security or provider event. Its later failures are not logged';

const HANGS =
  `takes too long to handle a security or provider event. At most ${MOST_RUNNING} of its calls run at a time, and later ` +
  'events wait. This is logged once';

const MISSES = `misses security or provider events, because ${MOST_WAITING} of them already wait for it. This is logged once`;

const LATE = 'has not finished with all security or provider events at the shutdown, which no longer waits for it';
