import { SessionStoreError } from '../errors/session.errors.js';
import { logger } from '../logging/session.logger.js';

/** Logs one line when calls to the session store begin to fail and one when they succeed again, not one per request. */
export class StoreFailureLog {
  #failures = 0;

  failed(error: unknown): void {
    if (this.#failures++ > 0) return;
    // Only the reason: a cause may quote what was being stored.
    const reason = error instanceof SessionStoreError ? error.reason : String(error);
    logger.error(`The session store failed; requests that need their session are answered 503: ${reason}`);
  }

  succeeded(): void {
    if (this.#failures === 0) return;
    logger.log(`The session store replies again after ${this.#failures} failed calls`);
    this.#failures = 0;
  }
}
