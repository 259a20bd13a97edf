import { FailureReasons, OneLineLogger, shownError } from '@nest-session/core/internal';
import { adviceFor } from './advice.js';

/** The only logger of this package. Its context is `RedisSession`. */
export const logger = new OneLineLogger('RedisSession');

/** One line when repeated work begins to fail, one for each further reason, and one when it succeeds again. */
export class FailureLog {
  readonly #reasons = new FailureReasons();

  constructor(
    private readonly failing: string,
    private readonly recovered: string,
  ) {}

  failed(error: unknown): void {
    if (toldReasons.has(Object(error) as object)) return;
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

/** The reasons of outages, with which each command fails that waited for the connection: OutageLog tells them. */
export const toldReasons = new WeakSet<object>();
