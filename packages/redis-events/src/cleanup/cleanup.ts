import { setTimeout as pause } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { partitionsByNode } from '../connection/node-with.js';
import { InjectConnection } from '../connection/redis-connections.js';
import { isFaultOfServer, RETRY } from '../connection/until-sound.js';
import { EventTrimmer, TrimCounter } from '../delivery/event.trimmer.js';
import { CleanupTurns } from './cleanup-turns.js';
import { DueSweeper } from './due.sweeper.js';
import { reportLate, SweepCounter } from './sweep.counter.js';
import type { PartitionKeys } from '../partitions/partition-keys.js';
import { Partitions } from '../partitions/partitions.js';
import { settledWithin } from '../timing/settled-within.js';

// Milliseconds. Dead instances stay for an hour anyway.
const HOUR = 3_600_000;
// Node.js fires a longer timer at once.
const LONGEST_TIMER = 2 ** 31 - 1;

/** What a pass over the partitions of a node counts. */
interface Pass {
  readonly swept: SweepCounter;
  readonly trimmed: TrimCounter;
}

/** What an instance has done in one tick. */
interface Tick {
  /** Monotonic time. */
  readonly end: number;
  readonly signal: AbortSignal;
  /** Is told of each error. */
  readonly failed: (error: unknown) => void;
  readonly errors: unknown[];
  /** How many were due long ago. */
  late: number;
  /** Whether it had the turn of the first partition, with what all of them have in common. */
  isFirst: boolean;
  /** Whether there was something to clean up. */
  isBusy: boolean;
  /** Whether this or another instance has cleaned up every partition. */
  isWhole: boolean;
}

/**
 * What the cleanup job does at each tick: it claims what is due, and trims the events. On each node it goes through the
 * partitions in a random order, and cleans up those whose turn it gets. So the instances share the work. A node that
 * does not reply, or refuses, holds up no other one, and not the next tick: it is asked again until then.
 */
@Injectable()
export class Cleanup {
  /** Monotonic time. */
  #nextCheck = 0;

  constructor(
    @InjectConnection('background') private readonly client: Redis,
    @Inject(Partitions) private readonly partitions: Partitions,
    @Inject(CleanupTurns) private readonly turns: CleanupTurns,
    @Inject(DueSweeper) private readonly sweeper: DueSweeper,
    @Inject(EventTrimmer) private readonly trimmer: EventTrimmer,
  ) {}

  /** What is cleaned up, as log lines say it. */
  get what(): string {
    return this.sweeper.what;
  }

  /**
   * `period`: milliseconds until the next tick. Resolves to whether every partition has been cleaned up by then.
   * Rejects with the first error that was no fault of a server, after everything else is done. `failed` is told of each
   * fault.
   */
  async run(period: number, signal: AbortSignal, failed: (error: unknown) => void = () => undefined): Promise<boolean> {
    const end = performance.now() + period;
    const tick: Tick = { end, signal, failed, errors: [], late: 0, isFirst: false, isBusy: false, isWhole: true };
    const nodes = [...partitionsByNode(this.client, this.partitions.all).values()];
    const work = Promise.all(nodes.map((its) => this.#passOver(its, tick))).then(async () => {
      reportLate(this.what, tick.late);
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
    const pass = { swept: new SweepCounter(false), trimmed: new TrimCounter() };
    let left = shuffled(partitions);
    for (;;) {
      const again: PartitionKeys[] = [];
      for (const [i, partition] of left.entries()) {
        if (isOver(tick)) break;
        const outcome = await this.#takeTurn(partition, pass, tick);
        if (outcome === 'again') again.push(partition);
        if (outcome !== 'silent') continue;
        again.push(...left.slice(i));
        break;
      }
      left = again;
      if (left.length === 0 || isOver(tick)) break;
      await pause(RETRY, undefined, { ref: false, signal: tick.signal }).catch(() => undefined);
    }
    if (isOver(tick)) tick.isWhole = false;
    pass.swept.report(tick.signal);
    this.trimmer.report(pass.trimmed);
    tick.late += pass.swept.result.late;
  }

  /** Cleans up a partition if it is the turn of this instance. `again`: the server has refused that, or is at it. */
  async #takeTurn(partition: PartitionKeys, pass: Pass, tick: Tick): Promise<'done' | 'again' | 'silent'> {
    try {
      const turn = await this.turns.take(partition, Math.max(1, tick.end - performance.now()));
      if (turn === 'silent') return 'silent';
      if (turn === 'busy') return 'again';
      const isOwn = turn === 'due' || turn === 'clean';
      tick.isFirst ||= isOwn && partition === this.partitions.all[0];
      if (turn !== 'due' && !(turn === 'clean' && this.sweeper.looksElsewhere)) return 'done';
      tick.isBusy ||= turn === 'due';
      await this.turns.during(partition, () => this.#cleanUp(partition, pass, tick.signal));
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

  async #cleanUp(partition: PartitionKeys, { swept, trimmed }: Pass, signal: AbortSignal): Promise<void> {
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

  /** At rest, once an hour. */
  async #checkGroups({ isBusy, signal }: Tick): Promise<void> {
    if (!isBusy && performance.now() < this.#nextCheck) return;
    await this.trimmer.checkGroups(signal);
    this.#nextCheck = performance.now() + HOUR;
  }
}

function isOver({ end, signal }: Tick): boolean {
  return signal.aborted || performance.now() >= end;
}

function shuffled<T>(items: readonly T[]): T[] {
  const keyed = items.map((item) => [Math.random(), item] as const);
  return keyed.toSorted(([a], [b]) => a - b).map(([, item]) => item);
}
