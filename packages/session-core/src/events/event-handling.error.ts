import { ErrorOfSeveral } from '../errors/error-of-several.js';
import type { FailedHandler } from './session-event-handling.error.js';

/** Thrown when some handlers of an event failed. The others succeeded. */
export class EventHandlingError extends ErrorOfSeveral {
  /** Always 'EventHandlingError'. */
  override readonly name = 'EventHandlingError';

  constructor(
    shownEvent: string,
    /** The handlers that failed, and what each threw. */
    readonly failed: readonly FailedHandler[],
    /** The names of the handlers that succeeded. */
    readonly succeeded: readonly string[],
  ) {
    super(
      failed.map(({ cause }) => cause),
      `${shownEvent} was not handled by ${failed.map(({ name }) => name).join(', ')}`,
    );
  }
}
