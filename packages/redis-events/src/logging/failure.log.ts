import { FailureReasons, OneLineLogger, shownError } from '@nest-session/core/internal';
import { adviceFor } from './advice.js';

/** The only logger of this package. Its context is `RedisSession`. */
export const logger = new OneLineLogger('RedisSession');

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

/**
 * The reasons of outages, which OutageLog tells. Each command that waited for the connection fails with the same error,
 * as when Redis refuses the password: that need not be told again.
 */
export const toldReasons = new WeakSet<object>();
