import { AsyncLocalStorage } from 'node:async_hooks';
import { logger } from '../logging/session.logger.js';
import { shownStack } from '../logging/shown-error.js';

/** Repeats a step in the background, one at a time. A step that fails is logged, and the loop goes on. */
export class PollingLoop {
  #active = false;
  #timer: NodeJS.Timeout | undefined;
  #step: Promise<void> = Promise.resolve();
  /** A request may start the loop, which outlives it. */
  readonly #outside = AsyncLocalStorage.snapshot();

  /**
   * @param name the beginning of the log line about a failed step, such as `The search for expired sessions`
   * @param interval milliseconds from the end of one step to the start of the next
   */
  constructor(
    private readonly name: string,
    private readonly interval: number,
    private readonly step: () => Promise<unknown>,
  ) {}

  /** Starts the loop; the first step runs after one interval. Does not keep the process alive. */
  start(): void {
    this.#active = true;
    this.#outside(() => this.#schedule());
  }

  /** Stops the loop. Resolves when the step that is running, if any, has finished. */
  async stop(): Promise<void> {
    this.#active = false;
    clearTimeout(this.#timer);
    await this.#step;
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      // The step before may still run when the loop was stopped and started again in the meantime.
      this.#step = this.#step.then(() => this.#run());
    }, this.interval).unref();
  }

  async #run(): Promise<void> {
    if (!this.#active) return;
    try {
      await this.step();
    } catch (error) {
      logger.error(`${this.name} failed and will be retried`, shownStack(error));
    }
    if (this.#active) this.#schedule();
  }
}
