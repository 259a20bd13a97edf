import { logger } from './session.logger.js';

/** Logs one warning for each cause, however often the cause occurs. */
export class WarnOnce {
  readonly #warned = new Set<string>();

  warn(cause: string, message: string): void {
    if (this.#warned.has(cause)) return;
    this.#warned.add(cause);
    logger.warn(message);
  }
}
