import { logger } from './redis-session.logger.js';
import { shownError } from '@nest-session/core/internal';

/** One line when something that is repeated begins to fail, and one when it succeeds again. */
export class FailureLog {
  #isFailing = false;

  /** `failing` is followed by the error. */
  constructor(
    private readonly failing: string,
    private readonly recovered: string,
  ) {}

  failed(error: unknown): void {
    if (!this.#isFailing) logger.error(`${this.failing}: ${shownError(error)}`);
    this.#isFailing = true;
  }

  succeeded(): void {
    if (this.#isFailing) logger.log(this.recovered);
    this.#isFailing = false;
  }
}
