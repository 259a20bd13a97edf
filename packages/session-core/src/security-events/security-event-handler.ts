import type { BoundMethod } from '../discovery/discover-methods.js';
import { logger } from '../logging/session.logger.js';
import type { SecurityEvent, SecurityEventKind } from './security-event.js';
import { shownStack } from '../logging/shown-error.js';

const MOST_RUNNING = 16;
const MOST_WAITING = 1000;
const PATIENCE = 30_000;

/** Calls a method with `@OnSecurityEvent`. A slow or failing method delays and harms nothing else. */
export class SecurityEventHandler {
  readonly #waiting: SecurityEvent[] = [];
  readonly #logged = new Set<string>();
  #running = 0;

  /**
   * @param kinds the kinds that the method handles. Empty means all
   * @param patience after so many milliseconds, a call that has not finished is logged
   */
  constructor(
    private readonly method: BoundMethod,
    private readonly kinds: ReadonlySet<SecurityEventKind>,
    private readonly patience = PATIENCE,
  ) {}

  wants(kind: SecurityEventKind): boolean {
    return this.kinds.size === 0 || this.kinds.has(kind);
  }

  hear(event: SecurityEvent): void {
    if (this.#running < MOST_RUNNING) void this.#call(event);
    else if (this.#waiting.length < MOST_WAITING) this.#waiting.push(event);
    else this.#logOnce(MISSES);
  }

  async #call(event: SecurityEvent): Promise<void> {
    this.#running++;
    const hangs = setTimeout(() => this.#logOnce(HANGS), this.patience).unref();
    try {
      // Let the request go on first.
      await Promise.resolve();
      await this.method.call(event);
    } catch (error) {
      this.#logOnce(FAILS, shownStack(error));
    } finally {
      clearTimeout(hangs);
      this.#running--;
    }
    const next = this.#waiting.shift();
    if (next) void this.#call(next);
  }

  #logOnce(sentence: string, stack?: string): void {
    if (this.#logged.has(sentence)) return;
    this.#logged.add(sentence);
    logger.error(`${this.method.name} ${sentence}`, stack);
  }
}

const FAILS = 'failed to handle a security event. Its later failures are not logged';

const HANGS =
  `takes too long to handle a security event. At most ${MOST_RUNNING} of its calls run at a time, and later events ` +
  'wait. This is logged once';

const MISSES = `misses security events, because ${MOST_WAITING} of them already wait for it. This is logged once`;
