import { setTimeout as pause } from 'node:timers/promises';
import { Inject, Injectable, Optional } from '@nestjs/common';
import { SchedulerRegistry } from '@nestjs/schedule';
import { CronJob, CronTime } from 'cron';
import type { Redis } from 'ioredis';
import { partitionsByNode } from '../connection/node-with.js';
import { InjectConnection } from '../connection/redis-connections.js';
import { isFaultOfServer } from '../connection/server-faults.js';
import { CONSUMER_IDENTITY, EVENT_RULES, type TrimLimits } from '../configuration/event-rules.js';
import { EventProducer } from '../delivery/event-producer.js';
import { EventTrimmer, TrimCounter } from '../delivery/event.trimmer.js';
import { FailureLog, logger } from '../logging/failure.log.js';
import { type PartitionKeys, Partitions } from '../partitions/partitions.js';
import {
  type ConsumerIdentity,
  EventStreamScripts,
  type TakeCleanupTurnReply,
} from '../scripts/event-stream.scripts.js';
import { type BackgroundService, RETRY, settledWithin } from '../timing/background-service.js';
import { DueSweeper, reportLate, SweepCounter } from './due.sweeper.js';

export interface CleanupSchedule {
  readonly name: string;
  readonly cron: string;
}

export const CLEANUP_SCHEDULE = Symbol('CLEANUP_SCHEDULE');

const HOUR = 3_600_000;
// Keeps instances, whose clocks agree, from sweeping all at once.
const LONGEST_JITTER = 500;
// In which a tick should have done its work.
const PATIENCE = 5000;
const PATIENCE_WITH_NODE = 1000;
const SHARE = 0.9;
// Node.js fires a longer timer at once.
const LONGEST_TIMER = 2 ** 31 - 1;

/** At a time, one instance cleans a partition up. See take-cleanup-turn.lua. */
@Injectable()
export class CleanupTurns {
  /** The partitions that have not replied, or are still being cleaned up. */
  readonly #busy = new Set<PartitionKeys>();

  constructor(
    @Inject(EventStreamScripts) private readonly scripts: EventStreamScripts,
    @Inject(CONSUMER_IDENTITY) private readonly instance: Pick<ConsumerIdentity, 'consumer'>,
    @Inject(EVENT_RULES) private readonly rules: TrimLimits,
    @Inject(Partitions) private readonly partitions: Partitions,
  ) {}

  /** Takes the turn if it is free. `left`: milliseconds until the next tick. `silent`: its node does not reply. */
  async take(partition: PartitionKeys, left: number): Promise<TakeCleanupTurnReply | 'busy' | 'silent'> {
    if (this.#busy.has(partition)) return 'busy';
    const duration = Math.max(1, Math.floor(left * SHARE));
    const limits = { ...this.rules, maxLength: this.partitions.shareOf(this.rules.maxLength) };
    const asking = this.during(partition, () =>
      this.scripts.takeCleanupTurn(partition, this.instance.consumer, duration, limits),
    );
    return (await settledWithin(PATIENCE_WITH_NODE, asking)) ? asking : 'silent';
  }

  /** This instance has no other turn of the partition before the work has finished. */
  during<T>(partition: PartitionKeys, work: () => Promise<T>): Promise<T> {
    this.#busy.add(partition);
    return work().finally(() => this.#busy.delete(partition));
  }
}

interface Tick {
  /** Monotonic time. */
  readonly end: number;
  readonly signal: AbortSignal;
  readonly failed: (error: unknown) => void;
  readonly errors: unknown[];
  late: number;
  /** Whether it had the turn of the first partition, with what all of them have in common. */
  isFirst: boolean;
  isBusy: boolean;
  isWhole: boolean;
}

/**
 * What the job does at each tick. On each node it goes through the partitions in a random order, and cleans up those
 * whose turn it gets: so the instances share the work. A node that does not reply, or refuses, holds up no other one:
 * it is asked again until the next tick.
 */
@Injectable()
export class Cleanup {
  #nextCheck = 0;

  constructor(
    @InjectConnection('background') private readonly client: Redis,
    @Inject(Partitions) private readonly partitions: Partitions,
    @Inject(CleanupTurns) private readonly turns: CleanupTurns,
    @Inject(DueSweeper) readonly sweeper: DueSweeper,
    @Inject(EventTrimmer) private readonly trimmer: EventTrimmer,
  ) {}

  /** Whether each partition was cleaned up within `period` ms. `failed` hears of faults of servers; else it rejects. */
  async run(period: number, signal: AbortSignal, failed: (error: unknown) => void = () => undefined): Promise<boolean> {
    const end = performance.now() + period;
    const tick: Tick = { end, signal, failed, errors: [], late: 0, isFirst: false, isBusy: false, isWhole: true };
    const nodes = [...partitionsByNode(this.client, this.partitions.all).values()];
    const work = Promise.all(nodes.map((its) => this.#passOver(its, tick))).then(async () => {
      reportLate(this.sweeper.what, tick.late);
      if (tick.isFirst) await this.#checkGroups(tick);
      if (tick.errors.length > 0) throw tick.errors[0];
    });
    // What fails later, when the node replies again, a later tick repeats.
    work.catch(() => undefined);
    if (!(await settledWithin(Math.min(period, LONGEST_TIMER), work))) return false;
    await work;
    return tick.isWhole;
  }

  /** The partitions of one node, one after the other: what waits here, another instance may take. */
  async #passOver(partitions: readonly PartitionKeys[], tick: Tick): Promise<void> {
    const [swept, trimmed] = [new SweepCounter(false), new TrimCounter()];
    const cleanUp = (partition: PartitionKeys) => this.#cleanUp(partition, swept, trimmed, tick.signal);
    const isOver = () => tick.signal.aborted || performance.now() >= tick.end;
    let left = shuffled(partitions);
    for (;;) {
      const again: PartitionKeys[] = [];
      for (const [i, partition] of left.entries()) {
        if (isOver()) break;
        const outcome = await this.#takeTurn(partition, tick, cleanUp);
        if (outcome === 'again') again.push(partition);
        if (outcome !== 'silent') continue;
        again.push(...left.slice(i));
        break;
      }
      left = again;
      if (left.length === 0 || isOver()) break;
      await pause(RETRY, undefined, { ref: false, signal: tick.signal }).catch(() => undefined);
    }
    if (isOver()) tick.isWhole = false;
    swept.report(tick.signal);
    this.trimmer.report(trimmed);
    tick.late += swept.result.late;
  }

  async #takeTurn(
    partition: PartitionKeys,
    tick: Tick,
    cleanUp: (partition: PartitionKeys) => Promise<void>,
  ): Promise<'done' | 'again' | 'silent'> {
    try {
      const turn = await this.turns.take(partition, Math.max(1, tick.end - performance.now()));
      if (turn === 'silent') return 'silent';
      if (turn === 'busy') return 'again';
      tick.isFirst ||= turn !== 'taken' && partition === this.partitions.all[0];
      if (turn !== 'due' && !(turn === 'clean' && this.sweeper.looksElsewhere)) return 'done';
      tick.isBusy ||= turn === 'due';
      await this.turns.during(partition, () => cleanUp(partition));
      return 'done';
    } catch (error) {
      if (isFaultOfServer(error)) {
        tick.failed(error);
        return 'again';
      }
      tick.errors.push(error);
      return 'done';
    }
  }

  async #cleanUp(partition: PartitionKeys, swept: SweepCounter, trimmed: TrimCounter, signal: AbortSignal) {
    const before = swept.failures.length;
    await this.sweeper.sweep([partition], swept, { signal });
    const fault = swept.failures.slice(before).find(isFaultOfServer);
    if (fault !== undefined) {
      // It is repeated at once, and told by the job.
      swept.failures.length = before;
      throw fault;
    }
    await this.trimmer.trim(partition, trimmed, signal);
  }

  /** At rest, once an hour: dead instances stay for an hour anyway. */
  async #checkGroups({ isBusy, signal }: Tick): Promise<void> {
    if (!isBusy && performance.now() < this.#nextCheck) return;
    await this.trimmer.checkGroups(signal);
    this.#nextCheck = performance.now() + HOUR;
  }
}

function shuffled<T>(items: readonly T[]): T[] {
  const keyed = items.map((item) => [Math.random(), item] as const);
  return keyed.toSorted(([a], [b]) => a - b).map(([, item]) => item);
}

/** Runs the cleanup at the times of a cron expression, and skips a tick while the previous one runs. */
@Injectable()
export class CleanupJob implements BackgroundService {
  readonly #job: CronJob;
  readonly #stopping = new AbortController();
  readonly #failures: FailureLog;
  #tick: Promise<void> | undefined;
  #wholeAt = performance.now();
  #lateFrom = Infinity;

  constructor(
    @Inject(CLEANUP_SCHEDULE) private readonly schedule: CleanupSchedule,
    @Inject(Cleanup) private readonly cleanup: Cleanup,
    @Inject(EventProducer) private readonly producer: EventProducer,
    // It is there when the application imports ScheduleModule. A second forRoot() of that would run each @Cron twice.
    @Optional() @Inject(SchedulerRegistry) private readonly registry?: SchedulerRegistry,
  ) {
    const what = `The cleanup of ${cleanup.sweeper.what}`;
    this.#failures = new FailureLog(`${what} failed and will run again`, `${what} works again`);
    this.#job = CronJob.from({
      cronTime: schedule.cron,
      name: schedule.name,
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
    // Nest ends the start where a name is taken twice, so the application takes its names first.
    void this.producer.handlers.ready().then(() => this.#register());
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#job.stop();
    const { registry, schedule } = this;
    const listed = registry?.doesExist('cron', schedule.name) && registry.getCronJob(schedule.name);
    if (listed === this.#job) registry?.deleteCronJob(schedule.name);
    await this.#tick;
  }

  #register(): void {
    const { registry, schedule } = this;
    if (!registry || this.#stopping.signal.aborted) return;
    if (!registry.doesExist('cron', schedule.name)) return registry.addCronJob(schedule.name, this.#job);
    logger.warn(
      `The application has a cron job ${JSON.stringify(schedule.name)} of its own, so SchedulerRegistry does not list ` +
        'the cleanup of nest-session, which runs all the same. Give your job another name',
    );
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    const failed = (error: unknown) => signal.aborted || this.#failures.failed(error);
    try {
      await pause(Math.random() * LONGEST_JITTER, undefined, { ref: false, signal });
      const period = this.#job.nextDate().toMillis() - Date.now();
      if (await this.cleanup.run(period, signal, failed)) this.#expectTicks();
      this.#failures.succeeded();
    } catch (error) {
      failed(error);
    }
  }

  #expectTicks(): void {
    this.#wholeAt = performance.now();
    const [, second] = this.#job.nextDates(2);
    this.#lateFrom = performance.now() + second!.toMillis() - Date.now() + PATIENCE;
  }
}

/** The offset of Node.js where the machine has no time zone that `cron` knows, as with an empty `TZ`. */
function zoneOfMachine(): { readonly utcOffset?: number } {
  try {
    new CronTime('* * * * * *').sendAt();
    if (Intl.DateTimeFormat().resolvedOptions().timeZone !== undefined) return {};
  } catch {
    // Nor does `cron` know it.
  }
  return { utcOffset: -new Date().getTimezoneOffset() };
}
