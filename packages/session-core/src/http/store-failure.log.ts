import { SessionStoreError } from '../errors/session.errors.js';
import { logger } from '../logging/session.logger.js';
import { shownError } from '../logging/shown-error.js';

/** Logs one line when calls to the session store begin to fail, and one when they succeed again. */
export class StoreFailureLog {
  #failures = 0;

  failed(error: unknown): void {
    if (this.#failures++ > 0) return;
    // Only the reason, because the cause may quote a value.
    const reason = error instanceof SessionStoreError ? JSON.stringify(error.reason) : shownError(error);
    logger.error(`The session store failed, so requests that need their session get a 503 response: ${reason}`);
  }

  succeeded(): void {
    if (this.#failures === 0) return;
    logger.log(`The session store works again after ${this.#failures} failed calls`);
    this.#failures = 0;
  }
}
