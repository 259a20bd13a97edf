export interface FailedHandler {
  /** `Class.method` */
  readonly name: string;
  readonly cause: unknown;
}

/** Some handlers of an event failed, the others have succeeded. */
export class SessionEventHandlingError extends AggregateError {
  override readonly name = 'SessionEventHandlingError';

  constructor(
    /** The event, as it is written into logs. */
    shownEvent: string,
    readonly failed: readonly FailedHandler[],
    /** Their names, `Class.method`. */
    readonly succeeded: readonly string[],
  ) {
    super(
      failed.map(({ cause }) => cause),
      `Session event ${shownEvent} was not handled by ${failed.map(({ name }) => name).join(', ')}`,
    );
  }
}
