import {
  ConflictException,
  ForbiddenException,
  HttpException,
  PayloadTooLargeException,
  UnauthorizedException,
} from '@nestjs/common';
import { markRefusal, refusal, refusalBody } from './refusals.js';

/** Thrown at start-up when options are invalid. The message lists every problem. */
export class InvalidSessionOptionsError extends Error {
  /** Always 'InvalidSessionOptionsError'. */
  override readonly name = 'InvalidSessionOptionsError';

  constructor(
    module: string,
    /** One sentence for each problem. It says how to fix the problem. */
    readonly problems: readonly string[],
  ) {
    super(`${module}: ${problems.join(' ')}`);
  }
}

/**
 * Thrown when the store failed, could not be reached or did not reply in time; a 503 response. `reason`, which is also
 * the message, is safe to log. `cause` may quote values. A write that timed out may still take effect.
 */
export class SessionStoreError extends HttpException {
  constructor(
    /** What failed: the same text as `message`. Only clients of GraphQL see it. */
    readonly reason: string,
    options: { cause?: unknown } = {},
  ) {
    super(...refusal('store-unavailable', options));
    markRefusal(this, 'SessionStoreError', reason);
  }
}

/**
 * Thrown when a request cannot do what its client expects, because the session of the client has ended or changed in
 * the meantime. Nothing was stored, nobody was signed in, and nothing has ended. It is thrown by
 * - a save that creates a session in which nobody signs in, when a sign-in or another rotation replaced the token of
 *   the request less than 60 s ago;
 * - `signIn()` or its save, when the session has ended in the meantime, or when a user was signed in to it and it was
 *   rotated. A visitor whose session was rotated gets a session of their own instead;
 * - the save of a sign-in, when every session of the user was ended after the request began, as by `Sessions.endAll()`;
 * - the save of attributes after `regenerate()` of `@nest-session/express-session`, in the same cases;
 * - the save of `signOut()` or `invalidate()`, when the session has become that of another principal less than 60 s
 *   ago.
 *
 * A 409 response with the reason `session-gone`. The client can repeat the request: it has a new token by then, or
 * none.
 */
export class SessionGoneError extends ConflictException {
  /** @param reason what was not done, and why. The client does not see it */
  constructor(reason: string) {
    super(refusalBody('session-gone'));
    markRefusal(this, 'SessionGoneError', reason);
  }
}

/** Thrown by `updateAttribute()` when other requests kept updating the attribute for 5 s; a 409. Nothing was stored. */
export class SessionConflictError extends HttpException {
  constructor(
    /** The name of the attribute. The client does not see it. */
    readonly attributeName: string,
    /** The milliseconds that the update has waited. */
    timeout: number,
  ) {
    super(...refusal('too-many-updates'));
    markRefusal(
      this,
      'SessionConflictError',
      `Session attribute ${JSON.stringify(attributeName)} was not updated within ${timeout} ms, because other ` +
        'requests kept updating it. Repeat the request later. If this occurs in normal use, spread what these requests ' +
        'store over several attributes',
    );
  }
}

/**
 * Thrown by `updateAttribute()` when it would have to wait, or repeat its update, for a client that has disconnected.
 * Nothing was stored. You do not have to handle it, nor to await the promise.
 */
export class ClientDisconnectedError extends HttpException {
  constructor() {
    // nginx logs 499 for such a request. Nest does not log HTTP exceptions, so disconnecting clients cannot flood the
    // log.
    super({ statusCode: 499, message: 'Client Closed Request' }, 499);
    this.name = 'ClientDisconnectedError';
    this.message =
      'The session attribute was not updated, because the client disconnected while the update was waiting';
  }
}

/** Thrown for a value that cannot be stored, or a missing required one. The message has its path, not the value. */
export class SessionAttributeError extends Error {
  /** Always 'SessionAttributeError'. */
  override readonly name = 'SessionAttributeError';

  constructor(
    /** The name of the attribute. */
    readonly attributeName: string,
    problem: string,
    options?: { readonly cause?: unknown },
  ) {
    super(`Session attribute ${JSON.stringify(attributeName)} ${problem}`, options);
  }
}

/** A bound on what a session may hold: the name of its option. Names of attributes always have at most 256 bytes. */
export type SessionBound = 'maxAttributes' | 'maxAttributeNameSize' | 'maxAttributeSize' | 'maxSessionSize';

/**
 * Thrown when an attribute would make the session larger than the options allow: by `setAttribute()`, and by a save for
 * what was changed in place, or because other requests have stored more in the meantime. The attribute keeps its value,
 * and the save stores nothing. The message never quotes a value. A 413 response without details.
 */
export class SessionBoundError extends PayloadTooLargeException {
  /** The name of the attribute. A name of more than 256 characters is cut to its first 64. */
  readonly attributeName: string;

  constructor(
    /** The bound that would be exceeded. */
    readonly bound: SessionBound,
    /** The value of the bound: bytes, or a number of attributes. */
    readonly limit: number,
    attributeName: string,
    problem: string,
    remedy: string,
  ) {
    super(refusalBody('session-too-large'));
    markRefusal(this);
    this.name = 'SessionBoundError';
    this.attributeName = attributeName.length > 256 ? `${attributeName.slice(0, 64)}...` : attributeName;
    this.message =
      `Session attribute ${JSON.stringify(this.attributeName)} ${problem}, more than the bound \`${bound}\` allows ` +
      `(${limit}): ${remedy}`;
  }
}

/** Thrown by the save of a new session that the option `mayCreate` refuses; a 429 response without a token. */
export class SessionCreationRefusedError extends HttpException {
  constructor() {
    super(...refusal('session-refused'));
    markRefusal(
      this,
      'SessionCreationRefusedError',
      'The option `mayCreate` refused to let this request create a session',
    );
  }
}

/**
 * Thrown by a save when the value of an index cannot be derived: its function threw (`cause`), returned no string or no
 * well-formed Unicode, or read another attribute. Nothing is saved. The message quotes no value.
 */
export class SessionIndexError extends Error {
  /** Always 'SessionIndexError'. */
  override readonly name = 'SessionIndexError';

  constructor(
    /** The name of the index. */
    readonly indexName: string,
    problem: string,
    options?: { readonly cause?: unknown },
  ) {
    super(`Session index ${JSON.stringify(indexName)} ${problem}`, options);
  }
}

/**
 * Thrown by a save that signs in a principal who already has as many live sessions as the option `maxSessions` allows,
 * with `whenReached: 'refuse'`, or in Redis with several partitions has waited for six times `commandTimeout` for other
 * sign-ins of the principal. Nothing was saved; a 409 response.
 */
export class TooManySessionsError extends HttpException {
  constructor(
    /** How many sessions a principal may have. */
    readonly perPrincipal: number,
  ) {
    super(...refusal('too-many-sessions'));
    markRefusal(
      this,
      'TooManySessionsError',
      `The principal already has ${perPrincipal} sessions or sign-ins under way, as many as the option \`maxSessions\` ` +
        'allows. End one of them, for example with Sessions.end(), and sign in again',
    );
  }
}

/** Thrown by the guard of `@DeviceBound()` in a browser that binds no sessions; a 403 response. */
export class DeviceNotBoundError extends ForbiddenException {
  constructor() {
    super(refusalBody('device-not-bound'));
    markRefusal(this);
  }
}

/** Thrown when a session cannot be used or changed at this point. The message says what to do instead. */
export class SessionStateError extends Error {
  /** Always 'SessionStateError'. */
  override readonly name = 'SessionStateError';
}

/**
 * Why `AuthenticatedGuard` refused a request:
 * - `'not-authenticated'`: its session has no signed-in user;
 * - `'not-recently-authenticated'`: the sign-in was too long ago, so the user has to enter the password again;
 * - `'device-proof-missing'`: its session is bound to a browser, and the request does not prove that it comes from
 *   there.
 */
export type AuthenticationRefusal = 'not-authenticated' | 'not-recently-authenticated' | 'device-proof-missing';

/**
 * Thrown by `AuthenticatedGuard`: a 401 response with `{ statusCode, message, error, reason }` and, if a recent sign-in
 * is required, `maxAge` in seconds.
 */
export class AuthenticationRequiredError extends UnauthorizedException {
  constructor(
    /** Why the request was refused. */
    readonly reason: AuthenticationRefusal,
    /** How long ago the sign-in may be, in seconds; undefined if any sign-in will do. */
    readonly maxAge?: number,
  ) {
    super(refusalBody(reason, maxAge === undefined ? {} : { maxAge }));
    markRefusal(this, 'AuthenticationRequiredError');
  }
}
