import { ErrorOfSeveral } from '../errors/error-of-several.js';

/** An event handler that threw or rejected. */
export interface FailedHandler {
  /** `Class.method` */
  readonly name: string;
  /** The error that it threw. */
  readonly cause: unknown;
}

/** Thrown when some handlers of an event failed. The other handlers succeeded. */
export class SessionEventHandlingError extends ErrorOfSeveral {
  /** Always 'SessionEventHandlingError'. */
  override readonly name = 'SessionEventHandlingError';

  constructor(
    /** The event as log lines name it. */
    shownEvent: string,
    /** The handlers that failed, each with its cause. */
    readonly failed: readonly FailedHandler[],
    /** The names of the handlers, `Class.method`. */
    readonly succeeded: readonly string[],
  ) {
    super(
      failed.map(({ cause }) => cause),
      `Session event ${shownEvent} was not handled by ${failed.map(({ name }) => name).join(', ')}`,
    );
  }
}
