import type { SessionEvent } from './session.events.js';

export interface FailedHandler {
  /** `Class.method` */
  readonly name: string;
  readonly cause: unknown;
}

/** Some handlers of an event failed, the others have succeeded. */
export class SessionEventHandlingError extends AggregateError {
  override readonly name = 'SessionEventHandlingError';

  constructor(
    event: SessionEvent,
    readonly failed: readonly FailedHandler[],
    /** Their names, `Class.method`. */
    readonly succeeded: readonly string[],
  ) {
    super(
      failed.map(({ cause }) => cause),
      `Session event ${event.id} was not handled by ${failed.map(({ name }) => name).join(', ')}`,
    );
  }
}
