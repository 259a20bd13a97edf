import type { KeyspaceNotification } from './keyspace-notification.js';
import { logger } from '../logging/redis-session.logger.js';

// What waits for a handler that is too slow must not fill the memory.
const LONGEST_QUEUE = 10_000;

/** Has notifications handled in their order, so many at a time. */
export class NotificationQueue {
  readonly #running = new Set<Promise<void>>();
  #waiting: KeyspaceNotification[] = [];
  /** One error for all that are too many, until none is waiting any more: it may have a line in the log. */
  #overflow: Error | undefined;
  #logged: unknown;

  constructor(
    private readonly concurrency: number,
    private readonly handler: (notification: KeyspaceNotification) => unknown,
    /** Is given what was not processed, and why. */
    private readonly onError: (error: unknown, notification: KeyspaceNotification) => unknown = (error, { event }) =>
      this.#log(error, event),
  ) {}

  push(notification: KeyspaceNotification): void {
    if (this.#running.size < this.concurrency) this.#begin(notification);
    else if (this.#waiting.length < LONGEST_QUEUE) this.#waiting.push(notification);
    else {
      this.#overflow ??= new Error(`${LONGEST_QUEUE} notifications are waiting already`);
      void this.#fail(this.#overflow, notification);
    }
  }

  /** Begins no other one. Resolves when what is running has finished. */
  async stop(): Promise<void> {
    const left = this.#waiting;
    const stopped = new Error('The listener was stopped before its turn');
    this.#waiting = [];
    await Promise.all(left.map((notification) => this.#fail(stopped, notification)));
    await Promise.all(this.#running);
  }

  #begin(notification: KeyspaceNotification): void {
    const running = this.#handle(notification).finally(() => {
      this.#running.delete(running);
      const next = this.#waiting.shift();
      if (next) this.#begin(next);
      else this.#overflow = undefined;
    });
    this.#running.add(running);
  }

  async #handle(notification: KeyspaceNotification): Promise<void> {
    try {
      await this.handler(notification);
    } catch (error) {
      await this.#fail(error, notification);
    }
  }

  async #fail(error: unknown, notification: KeyspaceNotification): Promise<void> {
    try {
      await this.onError(error, notification);
    } catch (failure) {
      logger.error(`The error handler of "${notification.event}" has failed: ${String(failure)}`);
    }
  }

  #log(error: unknown, event: string): void {
    if (error !== this.#logged) logger.error(`A notification of "${event}" was not processed: ${String(error)}`);
    this.#logged = error;
  }
}
