import { isObservable, lastValueFrom } from 'rxjs';
import { logger } from '../logging/session.logger.js';
import { shownStack } from '../logging/shown-error.js';
import type { FailedHandler } from './session-event-handling.error.js';

/** The calls of handlers that run. A shutdown waits for them, as long as it wants to. */
export class RunningHandlers {
  /** The running work, each with a function that stops the wait for it. */
  readonly #running = new Map<Promise<void>, (reason: Error) => void>();
  readonly #ready: Promise<void>;
  #givenUp: Error | undefined;
  #isReady = false;

  /**
   * @param what as in 'session events'
   * @param ready resolves when handlers can be called
   */
  constructor(
    private readonly what: string,
    ready: Promise<void>,
  ) {
    this.#ready = ready.then(() => {
      this.#isReady = true;
    });
  }

  /** Resolves when handlers can be called. */
  ready(): Promise<void> {
    return this.#ready;
  }

  /** Begins as soon as handlers can be called. Settles as the work does, or rejects when `giveUp()` comes first. */
  run(work: () => Promise<void>): Promise<void> {
    return this.track(this.#ready.then(work));
  }

  /** The same for work that has begun. */
  track(work: Promise<void>): Promise<void> {
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

  /** Resolves when nothing runs, or after `giveUp()`. */
  async idle(): Promise<void> {
    // Before the application is ready, no handler runs, and dispatched events may never start.
    while (this.#isReady && this.#running.size > 0) await Promise.allSettled(this.#running.keys());
  }

  /** Stops waiting for handlers, and rejects everything that has not finished. */
  giveUp(): void {
    this.#givenUp = new Error(`The application shut down before all ${this.what} were handled`);
    for (const reject of this.#running.values()) reject(this.#givenUp);
  }
}

/**
 * Calls a handler, and subscribes to an Observable that it returns, as Nest does. Resolves to what failed, which it
 * logs. `what` the handler handles, as log lines say it.
 */
export async function callHandler(
  name: string,
  what: string,
  handle: () => unknown,
): Promise<FailedHandler | undefined> {
  try {
    const result = await handle();
    if (isObservable(result)) await lastValueFrom(result, { defaultValue: undefined });
    return undefined;
  } catch (cause) {
    logger.error(`${name} failed to handle ${what}`, shownStack(cause));
    return { name, cause };
  }
}

/** The names of the handlers that succeeded. */
export function succeededOf(
  handlers: readonly { readonly name: string }[],
  failed: readonly FailedHandler[],
): string[] {
  return handlers.map(({ name }) => name).filter((name) => failed.every((each) => each.name !== name));
}
