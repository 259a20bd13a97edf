import { setTimeout as pause } from 'node:timers/promises';
import type { SchedulerRegistry } from '@nestjs/schedule';
import { CronJob, CronTime } from 'cron';
import { FailureLog } from '../logging/failure.log.js';
import { logger } from '../logging/redis-session.logger.js';
import type { BackgroundService } from '../timing/background-service.js';
import type { Cleanup } from './cleanup.js';

// Milliseconds. Keeps instances, whose clocks agree, from sweeping all at once.
const LONGEST_JITTER = 500;
// Milliseconds in which a tick should have done its work.
const PATIENCE = 5000;

/**
 * Runs the cleanup at the times of a cron expression. With `ScheduleModule`, its registry lists the job, unless the
 * application has one of the same name. The job skips a tick while the previous one runs.
 */
export class CleanupJob implements BackgroundService {
  readonly #job: CronJob;
  readonly #stopping = new AbortController();
  readonly #failures: FailureLog;
  #tick: Promise<void> | undefined;
  /** Monotonic times. */
  #wholeAt = performance.now();
  #lateFrom = Infinity;

  /** `name`: in `SchedulerRegistry`. `bootstrapped`: resolves when the application has registered its own jobs. */
  constructor(
    private readonly name: string,
    cron: string,
    private readonly cleanup: Pick<Cleanup, 'run' | 'what'>,
    private readonly registry: SchedulerRegistry | undefined,
    private readonly bootstrapped: () => Promise<void>,
  ) {
    this.#failures = new FailureLog(
      `The cleanup of ${cleanup.what} failed and will run again`,
      `The cleanup of ${cleanup.what} works again`,
    );
    this.#job = CronJob.from({
      cronTime: cron,
      name,
      // Not cron's `waitForCompletion`: its stop() polls, and keeps the process alive when a tick never ends.
      onTick: () => {
        this.#tick ??= this.#run().finally(() => (this.#tick = undefined));
      },
      unrefTimeout: true,
      ...zoneOfMachine(),
    });
  }

  /** Whether two ticks have passed since every partition was cleaned up. */
  get isLate(): boolean {
    return performance.now() > this.#lateFrom;
  }

  /** Milliseconds since every partition was cleaned up or, before that, since the job was made. */
  get age(): number {
    return performance.now() - this.#wholeAt;
  }

  start(): void {
    this.#job.start();
    this.#expectTicks();
    void this.bootstrapped().then(() => this.#register());
  }

  /** Aborts a running tick, and resolves when it has finished. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#job.stop();
    const isListed = this.registry?.doesExist('cron', this.name) && this.registry.getCronJob(this.name) === this.#job;
    if (isListed) this.registry?.deleteCronJob(this.name);
    await this.#tick;
  }

  /** Nest ends the start where a name is taken twice, so the application takes its names first. */
  #register(): void {
    if (!this.registry || this.#stopping.signal.aborted) return;
    if (!this.registry.doesExist('cron', this.name)) return this.registry.addCronJob(this.name, this.#job);
    logger.warn(
      `The application has a cron job ${JSON.stringify(this.name)} of its own, so SchedulerRegistry does not list the ` +
        'cleanup of nest-session, which runs all the same. Give your job another name',
    );
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    try {
      await pause(Math.random() * LONGEST_JITTER, undefined, { ref: false, signal });
      const period = this.#job.nextDate().toMillis() - Date.now();
      const isWhole = await this.cleanup.run(period, signal, (error) => this.#failed(error));
      if (isWhole) this.#expectTicks();
      this.#failures.succeeded();
    } catch (error) {
      this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    if (!this.#stopping.signal.aborted) this.#failures.failed(error);
  }

  #expectTicks(): void {
    this.#wholeAt = performance.now();
    const [, second] = this.#job.nextDates(2);
    this.#lateFrom = performance.now() + second!.toMillis() - Date.now() + PATIENCE;
  }
}

/**
 * Where the machine has no time zone that `cron` knows, such as with `TZ` set to nothing, the offset that Node.js uses:
 * `cron` would throw.
 */
function zoneOfMachine(): { readonly utcOffset?: number } {
  const isKnown = Intl.DateTimeFormat().resolvedOptions().timeZone !== undefined && hasNextTime();
  return isKnown ? {} : { utcOffset: -new Date().getTimezoneOffset() };
}

function hasNextTime(): boolean {
  try {
    new CronTime('* * * * * *').sendAt();
    return true;
  } catch {
    return false;
  }
}
