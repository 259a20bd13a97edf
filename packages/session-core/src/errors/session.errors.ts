import { HttpException, HttpStatus } from '@nestjs/common';

/** Thrown at start-up when options are wrong. Names every problem at once; correct the options and start again. */
export class InvalidSessionOptionsError extends Error {
  /** Always 'InvalidSessionOptionsError'. */
  override readonly name = 'InvalidSessionOptionsError';

  constructor(
    module: string,
    /** A sentence for each problem, with what to do about it. */
    readonly problems: readonly string[],
  ) {
    super(`${module}: ${problems.join(' ')}`);
  }
}

/**
 * Thrown when the store could not be asked or did not answer in time; `cause` says why. A write that timed out may
 * still take effect. As an HTTP exception it is answered 503 unless a filter decides otherwise.
 */
export class SessionStoreError extends HttpException {
  constructor(
    /** What failed, as in `message`; the client does not see it. */
    readonly reason: string,
    options: { cause?: unknown } = {},
  ) {
    super(
      {
        statusCode: HttpStatus.SERVICE_UNAVAILABLE,
        message: 'Session store unavailable',
        error: 'Service Unavailable',
      },
      HttpStatus.SERVICE_UNAVAILABLE,
      options,
    );
    this.name = 'SessionStoreError';
    this.message = reason;
  }
}

/**
 * Thrown when an attribute's value cannot be stored as it is, or when a required attribute is missing. Names the
 * attribute and the place inside it, never the value.
 */
export class SessionAttributeError extends Error {
  /** Always 'SessionAttributeError'. */
  override readonly name = 'SessionAttributeError';

  constructor(
    /** The name of the attribute. */
    readonly attributeName: string,
    problem: string,
    options?: ErrorOptions,
  ) {
    super(`Session attribute "${attributeName}" ${problem}`, options);
  }
}

/** Thrown when a session is changed in a state that cannot keep the change; the message says what to do instead. */
export class SessionStateError extends Error {
  /** Always 'SessionStateError'. */
  override readonly name = 'SessionStateError';
}
