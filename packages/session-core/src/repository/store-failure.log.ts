import type { SessionStoreError } from '../errors/session.errors.js';
import { FailureReasons } from '../logging/failure-reasons.js';
import { logger } from '../logging/session.logger.js';

// Milliseconds without a failure. While a part of the store is down, calls fail and succeed in turn.
const CALM = 5000;

/** `save`: writes more than there was. A store that is full can do everything else. */
export type StoreCallKind = 'save' | 'other';

/**
 * Logs one line when calls to the session store begin to fail, one for each further reason, and one when none has
 * failed for five seconds and one succeeds: a save if saves had failed.
 */
export class StoreFailureLog {
  readonly #reasons = new FailureReasons();
  #failures = 0;
  #savesFail = false;
  /** Monotonic time. */
  #lastFailure = 0;

  failed(error: SessionStoreError, kind: StoreCallKind): void {
    this.#savesFail ||= kind === 'save';
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
  succeeded(kind: StoreCallKind): boolean {
    if (this.#failures === 0) return true;
    if (this.#savesFail && kind !== 'save') return false;
    if (performance.now() - this.#lastFailure < CALM) return false;
    const calls = this.#failures === 1 ? '1 failed call' : `${this.#failures} failed calls`;
    logger.log(`The session store works again after ${calls}`);
    this.#failures = 0;
    this.#savesFail = false;
    this.#reasons.clear();
    return true;
  }
}
