import { logger } from './session.logger.js';

/** Logs one warning for each cause, however often the cause occurs, and for at most `mostCauses` causes. */
export class WarnOnce {
  readonly #warned = new Set<string>();

  constructor(private readonly mostCauses = 1000) {}

  warn(cause: string, message: string): void {
    if (this.#warned.has(cause) || this.#warned.size >= this.mostCauses) return;
    this.#warned.add(cause);
    logger.warn(message);
  }
}
