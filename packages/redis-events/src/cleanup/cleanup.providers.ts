import type { Provider } from '@nestjs/common';
import { SchedulerRegistry } from '@nestjs/schedule';
import { EventProducer } from '../delivery/event-producer.js';
import { Cleanup } from './cleanup.js';
import { CleanupJob } from './cleanup.job.js';
import { CleanupTurns } from './cleanup-turns.js';

/** When the cleanup job of a module runs. */
export interface CleanupSchedule {
  /** The name in `SchedulerRegistry`. */
  readonly name: string;
  /** A cron expression with seconds. */
  readonly cron: string;
}

export const CLEANUP_SCHEDULE = Symbol('CLEANUP_SCHEDULE');

/** What cleans up behind the `DueSweeper` of a module, at its `CLEANUP_SCHEDULE`. */
export const CLEANUP_PROVIDERS: Provider[] = [
  CleanupTurns,
  Cleanup,
  {
    provide: CleanupJob,
    // The registry is there when the application imports ScheduleModule. This package must not import it: a second
    // ScheduleModule.forRoot() would run every @Cron of the application twice.
    inject: [CLEANUP_SCHEDULE, Cleanup, EventProducer, { token: SchedulerRegistry, optional: true }],
    useFactory: (
      { name, cron }: CleanupSchedule,
      cleanup: Cleanup,
      { handlers }: EventProducer,
      registry?: SchedulerRegistry,
    ) => new CleanupJob(name, cron, cleanup, registry, () => handlers.ready()),
  },
];
