import type { Clock } from '@nest-session/core/internal';
import type { DeadlineDispatcher } from './deadline.dispatcher.js';
import type { MapDeadlineDelivery } from './map-deadline-delivery.js';
import type { MapDeadlineStore } from './map-deadline.store.js';

/** The clock may be set forward, and a timer does not count the time in which the machine slept. */
const LONGEST_WAIT = 1000;

/**
 * Fires deadlines, and begins retries, at their times. It sleeps until the next of them, and has no timer while nothing
 * waits. Deadlines without a handler in this application wait on.
 */
export class MapDeadlineLoop {
  #timer: NodeJS.Timeout | undefined;
  /** The names that are handled here; empty while the loop is stopped. */
  #names: readonly string[] = [];

  constructor(
    private readonly store: MapDeadlineStore,
    private readonly delivery: MapDeadlineDelivery,
    private readonly dispatcher: DeadlineDispatcher,
    private readonly clock: Clock,
  ) {}

  /** When something is due next; Infinity while the loop is stopped, or nothing waits. */
  get nextDue(): number {
    if (this.#names.length === 0) return Infinity;
    return Math.min(this.store.nextDue(this.#names), this.delivery.nextRetry);
  }

  /** Does not keep the process alive. */
  start(): void {
    const { dispatcher } = this;
    this.#names = [...new Set([...dispatcher.wantedTypes(), ...dispatcher.wantedTypes({ broadcast: true })])];
    this.store.onScheduled(() => this.#sleep());
    this.delivery.onRetryAdded(() => this.#sleep());
    this.#sleep();
  }

  /** Fires nothing more. */
  stop(): void {
    this.#names = [];
    this.#sleep();
  }

  /** Begins everything that is due. */
  runDue(): void {
    for (const fired of this.store.takeDue(this.#names)) this.delivery.deliver(fired);
    if (this.#names.length > 0) this.delivery.retryDue();
    this.#sleep();
  }

  /** Resolves when no handler runs. */
  idle(): Promise<void> {
    return this.delivery.idle();
  }

  #sleep(): void {
    clearTimeout(this.#timer);
    const wait = this.nextDue - this.clock.now();
    if (wait === Infinity) return;
    this.#timer = setTimeout(() => this.runDue(), Math.min(wait, LONGEST_WAIT)).unref();
  }
}
