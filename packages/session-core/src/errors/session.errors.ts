import { ConflictException, HttpException, HttpStatus, PayloadTooLargeException } from '@nestjs/common';

/** Thrown at start-up when options are wrong. The message names all problems at once. */
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
 * Thrown when the store failed, could not be reached or did not reply in time. `reason`, which is also the message, is
 * safe to log; `cause` may quote values. A write that timed out may still take effect. Nest answers this HTTP exception
 * with a 503 response unless an exception filter decides otherwise.
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
 * Thrown when a session could not be started, because the one that the client had is over. Nothing was stored, and nobody
 * is signed in. This is so for
 * - a save that creates a session, in a request whose token was replaced less than 60 s ago: by a sign-in or another
 *   change of the id;
 * - `signIn()`, or its save, when the session has ended meanwhile, or got another id.
 *
 * Nest answers this HTTP exception with a 409 response unless an exception filter decides otherwise. The client can
 * repeat the request: it has another token then, or none.
 */
export class SessionGoneError extends ConflictException {
  /** @param reason what was not done, and why; the client does not see it */
  constructor(reason: string) {
    super('The session has ended or changed in the meantime: repeat the request');
    this.name = 'SessionGoneError';
    this.message = reason;
  }
}

/**
 * Thrown by `updateAttribute()` when other requests updated the same attribute for longer than it waits, 5 seconds.
 * Nothing was stored. Nest answers this HTTP exception with a 409 response unless an exception filter
 * decides otherwise.
 */
export class SessionConflictError extends HttpException {
  constructor(
    /** The name of the attribute; the client does not see it. */
    readonly attributeName: string,
    /** Milliseconds that it has waited. */
    timeout: number,
  ) {
    super(
      { statusCode: HttpStatus.CONFLICT, message: 'Too many concurrent updates of the session', error: 'Conflict' },
      HttpStatus.CONFLICT,
    );
    this.name = 'SessionConflictError';
    this.message =
      `Session attribute ${JSON.stringify(attributeName)} was not updated within ${timeout} ms, because other requests ` +
      'kept updating it. Repeat the request later. If this occurs in normal use, keep what these requests store in ' +
      'several attributes';
  }
}

/**
 * Thrown by `updateAttribute()` when it would have to wait for other requests, or to repeat its update, for a client that
 * has disconnected. Nothing was stored. It needs no handling: no response can reach the client, and a promise of
 * `updateAttribute()` that nobody awaits causes no `unhandledRejection` with it.
 */
export class ClientDisconnectedError extends HttpException {
  constructor() {
    // What nginx logs for such a request. Nest logs no HTTP exception, so that nobody can flood the log by disconnecting.
    super({ statusCode: 499, message: 'Client Closed Request' }, 499);
    this.name = 'ClientDisconnectedError';
    this.message =
      'The session attribute was not updated, because the client disconnected while the update was waiting';
  }
}

/**
 * Thrown when the value of an attribute cannot be stored or decoded, or when a required attribute is missing; see
 * `SessionBoundError` for one that is too large. The
 * message names the attribute and, for a nested value, the place in it; never the value.
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
    super(`Session attribute ${JSON.stringify(attributeName)} ${problem}`, options);
  }
}

/** A bound of what a session may hold: the name of its option; names of attributes always have at most 256 bytes. */
export type SessionBound = 'maxAttributes' | 'maxAttributeNameSize' | 'maxAttributeSize' | 'maxSessionSize';

/**
 * Thrown when an attribute is set, or was changed in place and is saved, and the session would hold more than a bound
 * allows; or when a change is saved that would make that much together with what other requests have stored in the
 * meantime. The attribute stays as it was; nothing of a save with such an attribute is stored. The message names the
 * attribute, never its value. Nest answers this HTTP exception with a 413 response, which names nothing, unless an
 * exception filter decides otherwise.
 */
export class SessionBoundError extends PayloadTooLargeException {
  /** The name of the attribute; of a long one, the beginning. */
  readonly attributeName: string;

  constructor(
    /** The bound that would be exceeded. */
    readonly bound: SessionBound,
    /** What it allows: bytes, or a number of attributes. */
    readonly limit: number,
    attributeName: string,
    problem: string,
    remedy: string,
  ) {
    super('Session data too large');
    this.name = 'SessionBoundError';
    this.attributeName = attributeName.length > 256 ? `${attributeName.slice(0, 64)}...` : attributeName;
    this.message =
      `Session attribute ${JSON.stringify(this.attributeName)} ${problem}, more than the bound \`${bound}\` allows ` +
      `(${limit}): ${remedy}`;
  }
}

/**
 * Thrown by the save of a new session when the option `mayCreate` refuses it. Nothing is stored, and the client gets no
 * token. Nest answers this HTTP exception with a 429 response unless an exception filter decides otherwise.
 */
export class SessionCreationRefusedError extends HttpException {
  constructor() {
    const statusCode = HttpStatus.TOO_MANY_REQUESTS;
    super({ statusCode, message: 'Too many new sessions', error: 'Too Many Requests' }, statusCode);
    this.name = 'SessionCreationRefusedError';
    this.message = 'The option `mayCreate` has refused a new session';
  }
}

/**
 * Thrown by a save when the value of an index cannot be derived: its function throws, returns something other than a
 * string, reads another attribute than its own, or gives text that is not well-formed Unicode. Nothing is saved. The
 * message names the index, never a value; `cause` is what the function has thrown.
 */
export class SessionIndexError extends Error {
  /** Always 'SessionIndexError'. */
  override readonly name = 'SessionIndexError';

  constructor(
    /** The name of the index. */
    readonly indexName: string,
    problem: string,
    options?: ErrorOptions,
  ) {
    super(`Session index ${JSON.stringify(indexName)} ${problem}`, options);
  }
}

/**
 * Thrown by a save that signs a principal in who has as many live sessions as the option `maxSessions` allows, with
 * `whenReached: 'refuse'`. Nothing was saved. Nest answers this HTTP exception with a 409 response unless an exception
 * filter decides otherwise.
 */
export class TooManySessionsError extends HttpException {
  constructor(
    /** How many sessions a principal may have. */
    readonly perPrincipal: number,
  ) {
    super({ statusCode: HttpStatus.CONFLICT, message: 'Too many sessions', error: 'Conflict' }, HttpStatus.CONFLICT);
    this.name = 'TooManySessionsError';
    this.message =
      `A principal may have ${perPrincipal} sessions (option \`maxSessions\`): ` +
      'end one of them, as with Sessions.end(), and sign in again';
  }
}

/** Thrown when a session cannot be used or changed at this point; the message says what to do instead. */
export class SessionStateError extends Error {
  /** Always 'SessionStateError'. */
  override readonly name = 'SessionStateError';
}
