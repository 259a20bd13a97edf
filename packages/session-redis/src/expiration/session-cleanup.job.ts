import { setTimeout as pause } from 'node:timers/promises';
import type { SchedulerRegistry } from '@nestjs/schedule';
import { CronJob } from 'cron';
import { logger } from '../logging/redis-session.logger.js';

/** The name of the job in `SchedulerRegistry`. */
export const SESSION_CLEANUP_JOB = 'session-cleanup';

// So that the instances of an application, whose clocks agree, do not all ask Redis at once.
const LONGEST_JITTER = 500;

/**
 * Runs the cleanup by the clock: one tick per interval, whether the application has @nestjs/schedule, which then lists
 * the job, or not. A tick that takes longer than the interval is not overtaken by the next one.
 */
export class SessionCleanupJob {
  readonly #job: CronJob;
  readonly #stopping = new AbortController();
  #tick: Promise<void> | undefined;

  constructor(
    cron: string,
    private readonly cleanUp: (signal: AbortSignal) => Promise<unknown>,
    private readonly registry: SchedulerRegistry | undefined,
  ) {
    this.#job = CronJob.from({
      cronTime: cron,
      name: SESSION_CLEANUP_JOB,
      // Not cron's own `waitForCompletion`: its stop() then polls, and keeps a process alive whose tick never ends.
      onTick: () => {
        this.#tick ??= this.#run().finally(() => (this.#tick = undefined));
      },
      unrefTimeout: true,
    });
  }

  start(): void {
    this.registry?.addCronJob(SESSION_CLEANUP_JOB, this.#job);
    this.#job.start();
  }

  /** Resolves when a tick that is running, and is told of it, has finished. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#job.stop();
    if (this.registry?.doesExist('cron', SESSION_CLEANUP_JOB)) this.registry.deleteCronJob(SESSION_CLEANUP_JOB);
    await this.#tick;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    try {
      await pause(Math.random() * LONGEST_JITTER, undefined, { ref: false, signal });
      await this.cleanUp(signal);
    } catch (error) {
      if (!signal.aborted) logger.error(`The cleanup of sessions failed and is repeated: ${String(error)}`);
    }
  }
}
