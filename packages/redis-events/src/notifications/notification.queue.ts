import type { KeyspaceNotification } from './keyspace-notification.js';
import { logger } from '../logging/redis-session.logger.js';
import { shownError } from '@nest-session/core/internal';

// Notifications for a slow handler must not fill the memory.
const LONGEST_QUEUE = 10_000;

/** Calls the handler with notifications in their order, with a limited number of calls at a time. */
export class NotificationQueue {
  readonly #running = new Set<Promise<void>>();
  #waiting: KeyspaceNotification[] = [];
  /** The error of all notifications of one overflow, so that the log gets one line for it. */
  #overflow: Error | undefined;
  #logged: unknown;

  constructor(
    private readonly concurrency: number,
    private readonly handler: (notification: KeyspaceNotification) => unknown,
    /** Called with each notification that was not handled. */
    private readonly onError: (error: unknown, notification: KeyspaceNotification) => unknown = (error, { event }) =>
      this.#log(error, event),
  ) {}

  push(notification: KeyspaceNotification): void {
    if (this.#running.size < this.concurrency) this.#begin(notification);
    else if (this.#waiting.length < LONGEST_QUEUE) this.#waiting.push(notification);
    else {
      this.#overflow ??= new Error(`${LONGEST_QUEUE} notifications are already waiting: the handler is too slow`);
      void this.#fail(this.#overflow, notification);
    }
  }

  /** Starts no more calls. Resolves when the running calls have finished. */
  async stop(): Promise<void> {
    const left = this.#waiting;
    const stopped = new Error('The listener stopped before the handler was called');
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
      logger.error(`onError of ${JSON.stringify(notification.event)} failed: ${shownError(failure)}`);
    }
  }

  #log(error: unknown, event: string): void {
    if (error !== this.#logged) {
      logger.error(`A notification of ${JSON.stringify(event)} was not handled: ${shownError(error)}`);
    }
    this.#logged = error;
  }
}
