import { logger } from '../logging/session.logger.js';

/** Repeats a step in the background, never two at a time. A step that fails is logged and repeated like any other. */
export class PollingLoop {
  #active = false;
  #timer: NodeJS.Timeout | undefined;
  #step: Promise<void> = Promise.resolve();

  /**
   * @param name what a line of the log about a failed step begins with, such as `The search for expired sessions`
   * @param interval milliseconds from the end of one step to the begin of the next
   */
  constructor(
    private readonly name: string,
    private readonly interval: number,
    private readonly step: () => Promise<unknown>,
  ) {}

  /** The first step comes after one interval. Does not keep the process alive. */
  start(): void {
    this.#active = true;
    this.#schedule();
  }

  /** Resolves when a step that is running has finished; no other one begins. */
  async stop(): Promise<void> {
    this.#active = false;
    clearTimeout(this.#timer);
    await this.#step;
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      // After the step before, which may still run when the loop was stopped and started again meanwhile.
      this.#step = this.#step.then(() => this.#run());
    }, this.interval).unref();
  }

  async #run(): Promise<void> {
    if (!this.#active) return;
    try {
      await this.step();
    } catch (error) {
      logger.error(`${this.name} failed and is tried again`, error instanceof Error ? error.stack : String(error));
    }
    if (this.#active) this.#schedule();
  }
}
