import { logger } from './redis-session.logger.js';
import { adviceFor } from './advice.js';
import { toldReasons } from './told-reasons.js';
import { FailureReasons, shownError } from '@nest-session/core/internal';

/**
 * Logs one line when repeated work begins to fail, one for each further reason, and one when it succeeds again. What
 * fails with its connection is left to the lines about that.
 */
export class FailureLog {
  readonly #reasons = new FailureReasons();

  /** @param failing the text before the error */
  constructor(
    private readonly failing: string,
    private readonly recovered: string,
  ) {}

  /** Logs the reason, unless it is known by now. */
  failed(error: unknown): void {
    if (toldReasons.has(Object(error) as object)) return;
    const lasts = this.#reasons.isKnown;
    if (!this.#reasons.add(error)) return;
    const line = `${this.failing}${lasts ? ', now for another reason' : ''}: ${shownError(error)}`;
    logger.error(line + adviceFor(error));
  }

  /** Logs that the work succeeds again, if it had failed. */
  succeeded(): void {
    if (this.#reasons.isKnown) logger.log(this.recovered);
    this.#reasons.clear();
  }
}
