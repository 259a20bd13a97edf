import { Logger } from '@nestjs/common';

/** One line for each cause, however often it is met. */
export class OnceLog {
  readonly #logger = new Logger('Session');
  readonly #told = new Set<string>();

  warn(cause: string, message: string): void {
    if (this.#told.has(cause)) return;
    this.#told.add(cause);
    this.#logger.warn(message);
  }
}
