import { setImmediate as nextTurn } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import type { Duration } from '@nest-session/core';
import { parseDuration } from '@nest-session/core/internal';
import { ManualClock } from './manual.clock.js';

/** What happens by itself at its time in an application under test. */
export interface TimedWork {
  /** When something is due next, in epoch milliseconds; Infinity: nothing is. */
  readonly nextDue: number;
  /** Does what is due now. */
  runDue(): unknown;
  /** Resolves when no handler runs. */
  idle(): Promise<void>;
}

/**
 * The clock of an application under `TestSessionModule`, `TestDeadlineModule` or both. It begins now, and stands still
 * until you advance it. Get it from the application.
 */
@Injectable()
export class TestClock {
  readonly #clock = new ManualClock(Date.now());
  readonly #works: TimedWork[] = [];
  #turn: Promise<void> = Promise.resolve();

  /** Epoch milliseconds. */
  now(): number {
    return this.#clock.now();
  }

  /**
   * Advances the clock by a duration such as `'31m'`, from one time at which something happens to the next: sessions
   * expire, deadlines come, and handlers that failed are called again. It waits for the handlers of each time before it
   * goes on. So what a handler schedules within the duration comes, too. Initialize the application before you call it.
   */
  advance(duration: Duration): Promise<void> {
    const milliseconds = parseDuration(duration);
    if (typeof milliseconds === 'string') return Promise.reject(new TypeError(`advance(duration) ${milliseconds}`));
    const turn = this.#turn.then(() => this.#advanceTo(this.now() + milliseconds));
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  /** @internal The modules of stores add what they do. */
  add(work: TimedWork): void {
    this.#works.push(work);
  }

  async #advanceTo(end: number): Promise<void> {
    await this.#idle();
    for (let next = this.#nextDue; next <= end; next = this.#nextDue) {
      this.#moveTo(next);
      for (const work of this.#works) await work.runDue();
      await this.#idle();
    }
    this.#moveTo(end);
  }

  get #nextDue(): number {
    return Math.min(...this.#works.map(({ nextDue }) => nextDue));
  }

  /** What is overdue happens now. */
  #moveTo(instant: number): void {
    this.#clock.advance(Math.max(0, instant - this.now()));
  }

  /** The handlers of one kind of work may make another kind run. */
  async #idle(): Promise<void> {
    for (let wasIdle = false; !wasIdle;) {
      const idle = Promise.all(this.#works.map((work) => work.idle()));
      wasIdle = await Promise.race([idle.then(() => true), nextTurn(false)]);
      await idle;
    }
  }
}
