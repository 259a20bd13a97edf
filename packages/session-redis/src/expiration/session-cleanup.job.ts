import { setTimeout as pause } from 'node:timers/promises';
import type { SchedulerRegistry } from '@nestjs/schedule';
import { CronJob } from 'cron';
import { FailureLog } from '../logging/failure.log.js';

/** The name of the job in `SchedulerRegistry`. */
export const SESSION_CLEANUP_JOB = 'session-cleanup';

// Milliseconds. Keeps instances, whose clocks agree, from sweeping all at once.
const LONGEST_JITTER = 500;

/**
 * Runs the cleanup at the times of a cron expression. With `ScheduleModule`, its registry lists the job. The job skips
 * a tick while the previous one runs.
 */
export class SessionCleanupJob {
  readonly #job: CronJob;
  readonly #stopping = new AbortController();
  readonly #failures = new FailureLog(
    'The cleanup of sessions failed and will run again',
    'The cleanup of sessions works again',
  );
  #tick: Promise<void> | undefined;

  constructor(
    cron: string,
    private readonly cleanup: { run(period: number, signal: AbortSignal): Promise<unknown> },
    private readonly registry: SchedulerRegistry | undefined,
  ) {
    this.#job = CronJob.from({
      cronTime: cron,
      name: SESSION_CLEANUP_JOB,
      // Not cron's `waitForCompletion`: its stop() polls, and keeps the process alive when a tick never ends.
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

  /** Aborts a running tick, and resolves when it has finished. */
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
      await this.cleanup.run(this.#job.nextDate().toMillis() - Date.now(), signal);
      this.#failures.succeeded();
    } catch (error) {
      if (!signal.aborted) this.#failures.failed(error);
    }
  }
}
