import type { SessionStoreError } from '../errors/session.errors.js';
import { FailureReasons } from '../logging/failure-reasons.js';
import { logger } from '../logging/session.logger.js';

// Milliseconds without a failure. While a part of the store is down, calls fail and succeed in turn.
const CALM = 5000;

/**
 * Logs one line when calls to the session store begin to fail, one for each further reason, and one when none has failed
 * for five seconds.
 */
export class StoreFailureLog {
  readonly #reasons = new FailureReasons();
  #failures = 0;
  /** Monotonic time. */
  #lastFailure = 0;

  failed(error: SessionStoreError): void {
    this.#lastFailure = performance.now();
    this.#failures++;
    const lasts = this.#reasons.isKnown;
    if (!this.#reasons.add(error)) return;
    // Only the reason, because the cause may quote a value.
    const reason = JSON.stringify(error.reason);
    logger.error(
      lasts
        ? `The session store still fails, for another reason: ${reason}`
        : `The session store failed, so requests that need their session get a 503 response: ${reason}`,
    );
  }

  /** Returns whether the outage is over. */
  succeeded(): boolean {
    if (this.#failures === 0) return true;
    if (performance.now() - this.#lastFailure < CALM) return false;
    logger.log(`The session store works again after ${this.#failures} failed calls`);
    this.#failures = 0;
    this.#reasons.clear();
    return true;
  }
}
