import { logger } from './redis-session.logger.js';
import { shownError } from '@nest-session/core/internal';

/** Logs one line when repeated work begins to fail, and one when it succeeds again. */
export class FailureLog {
  #isFailing = false;

  /** @param failing the text before the error */
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
