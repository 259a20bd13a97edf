/** A handler of an event that threw or rejected. */
export interface FailedHandler {
  /** `Class.method` */
  readonly name: string;
  /** What it threw. */
  readonly cause: unknown;
}

/** Some handlers of an event failed, the others have succeeded. */
export class SessionEventHandlingError extends AggregateError {
  /** Always 'SessionEventHandlingError'. */
  override readonly name = 'SessionEventHandlingError';

  constructor(
    /** The event, as it is written into logs. */
    shownEvent: string,
    /** The handlers that failed, each with its cause. */
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
