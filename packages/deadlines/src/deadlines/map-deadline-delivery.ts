import { type Clock, EventHandlingError, logger, readData, textOf } from '@nest-session/core/internal';
import { type DeadlineDispatcher, shownDeadline } from './deadline.dispatcher.js';
import { DeadlineDataError } from './deadline.errors.js';
import { DeadlineEvent } from './deadline-event.js';
import type { DeadlineDeadLetter } from './deadline.events.js';
import type { DeadlineStore } from './deadline.store.js';
import type { FiredDeadline } from './map-deadline.store.js';

/** The name of the one group. */
export const MEMORY_GROUP = 'default';

const ATTEMPTS = 10;
const FIRST_BACK_OFF = 1000;
const LONGEST_BACK_OFF = 300_000;
const MOST_LETTERS = 1000;
const LONGEST_REASON = 1000;

/** How far the handlers of a deadline are. */
interface Delivery {
  readonly fired: FiredDeadline;
  /** The number of the next attempt. */
  readonly attempt: number;
  /** The names of the handlers that have succeeded. */
  readonly done: readonly string[];
}

interface Retry {
  readonly due: number;
  readonly delivery: Delivery;
}

/** Brings the deadlines that have come to their handlers, tries again those that fail, and keeps the dead letters. */
export class MapDeadlineDelivery {
  readonly #running = new Set<Promise<void>>();
  readonly #retries = new Set<Retry>();
  #nextRetry = Infinity;
  /** By their ids, the oldest first. */
  readonly #letters = new Map<string, { readonly letter: DeadlineDeadLetter; readonly delivery: Delivery }>();
  #lastLetter = 0;
  #lostLetters = 0;
  #retryAdded: () => void = () => undefined;

  constructor(
    private readonly dispatcher: DeadlineDispatcher,
    private readonly serializer: DeadlineStore['serializer'],
    private readonly clock: Clock,
  ) {}

  /** The number of those that are not handled yet. */
  get pending(): number {
    return this.#running.size + this.#retries.size;
  }

  get retrying(): number {
    return this.#retries.size;
  }

  /** When the next retry is due; Infinity when none waits. */
  get nextRetry(): number {
    return this.#nextRetry;
  }

  /** The oldest first. */
  get deadLetters(): DeadlineDeadLetter[] {
    return [...this.#letters.values()].map(({ letter }) => letter);
  }

  /** The number of dead letters that were dropped because there were too many. */
  get lostLetters(): number {
    return this.#lostLetters;
  }

  /** Calls a listener when there is another retry. */
  onRetryAdded(listener: () => void): void {
    this.#retryAdded = listener;
  }

  /** Calls the handlers of a deadline that has come. */
  deliver(fired: FiredDeadline): void {
    void this.dispatcher.broadcast(this.#eventOf(fired, 1));
    this.#begin({ fired, attempt: 1, done: [] });
  }

  /** Begins the retries that are due. */
  retryDue(): void {
    const now = this.clock.now();
    this.#nextRetry = Infinity;
    for (const retry of this.#retries) {
      if (retry.due > now) {
        this.#nextRetry = Math.min(this.#nextRetry, retry.due);
        continue;
      }
      this.#retries.delete(retry);
      this.#begin(retry.delivery);
    }
  }

  /** Handles a dead letter again, with new attempts. False when there is none with this id. */
  replay(id: string): boolean {
    const found = this.#letters.get(id);
    if (found) this.#begin({ ...found.delivery, attempt: 1 });
    return this.#letters.delete(id);
  }

  /** False when there is no dead letter with this id. */
  discard(id: string): boolean {
    return this.#letters.delete(id);
  }

  /** Resolves when no handler runs. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
    await this.dispatcher.idle();
  }

  #begin(delivery: Delivery): void {
    const attempt = this.#attempt(delivery).finally(() => this.#running.delete(attempt));
    this.#running.add(attempt);
  }

  async #attempt(delivery: Delivery): Promise<void> {
    const { fired, attempt, done } = delivery;
    try {
      await this.dispatcher.dispatch(this.#eventOf(fired, attempt), { done });
    } catch (error) {
      // Everything else means that the application ends.
      if (error instanceof EventHandlingError) this.#fail(delivery, error);
    }
  }

  #fail({ fired, attempt, done }: Delivery, error: EventHandlingError): void {
    const failed = { fired, attempt, done: [...done, ...error.succeeded] };
    if (attempt >= ATTEMPTS) return this.#bury(failed, error);
    const backOff = Math.min(FIRST_BACK_OFF * 2 ** (attempt - 1), LONGEST_BACK_OFF);
    const due = this.clock.now() + backOff;
    this.#retries.add({ due, delivery: { ...failed, attempt: attempt + 1 } });
    this.#nextRetry = Math.min(this.#nextRetry, due);
    logger.warn(`Event ${shownDeadline(fired)} failed in attempt ${attempt} of ${ATTEMPTS} and will be retried`);
    this.#retryAdded();
  }

  #bury(delivery: Delivery, { failed }: EventHandlingError): void {
    const { fired, attempt, done } = delivery;
    const [first] = failed;
    const reason = failed.map(({ name, cause }) => `${name}: ${textOf(cause)}`).join('; ');
    const letter: DeadlineDeadLetter = {
      id: String(++this.#lastLetter),
      at: this.clock.now(),
      reason: reason.slice(0, LONGEST_REASON),
      group: MEMORY_GROUP,
      handler: first?.name,
      attempts: attempt,
      succeeded: done,
      event: this.#eventOf(fired, attempt),
      omittedBytes: undefined,
      member: undefined,
    };
    this.#letters.set(letter.id, { letter, delivery });
    if (this.#letters.size > MOST_LETTERS) this.#dropOldestLetter();
    this.dispatcher.reportDeadLetter('deadline', first?.name ?? '');
    logger.error(
      `Event ${shownDeadline(fired)} is a dead letter now, see DeadlineEvents: ${JSON.stringify(letter.reason)}`,
    );
  }

  #dropOldestLetter(): void {
    const [oldest] = this.#letters.keys();
    this.#letters.delete(oldest!);
    this.#lostLetters++;
  }

  /** Each reading of its data gives an object of its own. */
  #eventOf({ id, name, key, text, dueAt, at, traceparent }: FiredDeadline, attempt: number): DeadlineEvent {
    const { serializer } = this;
    return new DeadlineEvent({
      id,
      name,
      key,
      dueAt,
      at,
      attempt,
      traceparent,
      get data() {
        return readData(name, text, serializer, DeadlineDataError);
      },
    });
  }
}
