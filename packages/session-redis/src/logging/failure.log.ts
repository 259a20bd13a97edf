import { logger } from './redis-session.logger.js';
import { adviceFor } from './advice.js';
import { FailureReasons, shownError } from '@nest-session/core/internal';

/** Logs one line when repeated work begins to fail, one for each further reason, and one when it succeeds again. */
export class FailureLog {
  readonly #reasons = new FailureReasons();

  /** @param failing the text before the error */
  constructor(
    private readonly failing: string,
    private readonly recovered: string,
  ) {}

  failed(error: unknown): void {
    const lasts = this.#reasons.isKnown;
    if (!this.#reasons.add(error)) return;
    const line = `${this.failing}${lasts ? ', now for another reason' : ''}: ${shownError(error)}`;
    logger.error(line + adviceFor(error));
  }

  succeeded(): void {
    if (this.#reasons.isKnown) logger.log(this.recovered);
    this.#reasons.clear();
  }
}
