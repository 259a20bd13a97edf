/** An event handler that threw or rejected. */
export interface FailedHandler {
  /** `Class.method` */
  readonly name: string;
  /** The error that it threw. */
  readonly cause: unknown;
}

/** `AggregateError`, with a type that also applications can compile whose `lib` is older than ES2021. */
const ErrorOfSeveral: new (
  errors: Iterable<unknown>,
  message?: string,
) => Error & {
  /** What went wrong, one error after the other. */
  readonly errors: readonly unknown[];
} = AggregateError;

/** Thrown when some handlers of an event failed. */
export class EventHandlingError extends ErrorOfSeveral {
  override readonly name: string = 'EventHandlingError';
  /** The names of the handlers that succeeded, `Class.method`. */
  readonly succeeded: readonly string[];

  constructor(
    /** The event as log lines name it. */
    shownEvent: string,
    /** The handlers that failed, each with its cause. */
    readonly failed: readonly FailedHandler[],
    /** The names of the handlers that were called. */
    called: readonly string[],
  ) {
    super(
      failed.map(({ cause }) => cause),
      `${shownEvent} was not handled by ${failed.map(({ name }) => name).join(', ')}`,
    );
    this.succeeded = called.filter((name) => failed.every((each) => each.name !== name));
  }
}

/** The same for a session event. */
export class SessionEventHandlingError extends EventHandlingError {
  /** Always 'SessionEventHandlingError'. */
  override readonly name = 'SessionEventHandlingError';

  constructor(shownEvent: string, failed: readonly FailedHandler[], called: readonly string[]) {
    super(`Session event ${shownEvent}`, failed, called);
  }
}
