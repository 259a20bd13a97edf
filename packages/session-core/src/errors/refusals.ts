import { STATUS_CODES } from 'node:http';
import type { HttpException } from '@nestjs/common';

type RefusalStatus = 401 | 403 | 409 | 413 | 429 | 503;

const TABLE = {
  'not-authenticated': [401, 'Sign in first'],
  'not-recently-authenticated': [401, 'Sign in again'],
  'device-proof-missing': [401, 'Sign in first'],
  'provider-session-ended': [401, 'The login at the identity provider has ended, or is too old: sign in again'],
  'cross-origin': [403, 'A page of another origin sent this request'],
  'missing-token': [403, 'The CSRF token is missing: send it in the header X-CSRF-Token or in the field _csrf'],
  'invalid-token': [403, 'The CSRF token does not belong to the session: load the page again'],
  'device-not-bound': [403, 'This needs a browser that binds its session to the device'],
  'foreign-connection': [403, 'Not the client of this connection'],
  'admin-not-allowed': [403, 'You have no access to the admin of sessions'],
  'admin-right-missing': [403, 'You may not do this in the admin of sessions'],
  'session-gone': [409, 'The session has ended or changed in the meantime: repeat the request'],
  'too-many-updates': [409, 'Too many concurrent updates of the session'],
  'too-many-sessions': [409, 'Too many sessions'],
  'too-many-aliases': [409, 'A browser has as many sessions as it may have: end one of them first'],
  'two-principals': [409, 'The request presents the sessions of two users: delete the cookies of this site'],
  'group-alive': [409, 'An instance of this group is alive: stop it first'],
  'dead-letter-orphaned': [
    409,
    'The group of this dead letter does not exist any more: nobody could handle it. Discard it',
  ],
  'dead-letter-foreign': [409, 'This dead letter is no event, so no handler can take it. Discard it'],
  'deadline-fired': [409, 'This deadline has come already'],
  'session-too-large': [413, 'Session data too large'],
  'deadline-too-large': [413, 'A limit of deadlines is reached'],
  'session-refused': [429, 'Too many new sessions'],
  'store-unavailable': [503, 'Session store unavailable'],
  'device-proof-unreachable': [503, 'The browser could not prove that this session is its own: try again in a moment'],
  'too-many-deadlines': [503, 'A limit of deadlines is reached'],
} as const satisfies Readonly<Record<string, readonly [RefusalStatus, string]>>;

/** Why a request was refused, for programs: the `reason` in the body of the response. Versions do not change it. */
export type RefusalReason = keyof typeof TABLE;

/** The body of a response with which a package of `@nest-session` refuses a request. */
export interface RefusalBody {
  /** The status of the response. */
  readonly statusCode: RefusalStatus;
  /** For people, in English: it may change with each version. */
  readonly message: string;
  /** The name of the status, such as `Conflict`. */
  readonly error: string;
  /** For programs. */
  readonly reason: RefusalReason;
}

/**
 * All bodies of 401, 403, 409, 413, 429 and 503 responses that the packages of `@nest-session` send, by their reason.
 * That of `not-recently-authenticated` also has `maxAge` in seconds, and that of `admin-right-missing` another message.
 */
export const REFUSALS: Readonly<Record<RefusalReason, RefusalBody>> = Object.fromEntries(
  Object.entries(TABLE).map(([reason, [statusCode, message]]) => [
    reason,
    { statusCode, message, error: STATUS_CODES[statusCode], reason },
  ]),
) as Record<RefusalReason, RefusalBody>;

/** A body of its own for each error: a filter of the application may change it. */
export function refusalBody<More extends object>(reason: RefusalReason, more?: More): RefusalBody & More {
  return { ...REFUSALS[reason], ...more! };
}

/** What a `HttpException` that is a refusal is made of. */
export function refusal(reason: RefusalReason, options?: { cause?: unknown }) {
  return [refusalBody(reason), REFUSALS[reason].statusCode, options] as const;
}

/**
 * Makes an error the refusal with its body: GraphQL gives a client the `extensions` of an error, and no body. They are
 * not enumerable, because a log shows the error without them. The client sees neither the name nor the message.
 */
export function markRefusal<E extends HttpException>(error: E, name = error.name, message = error.message): E {
  const { reason } = error.getResponse() as RefusalBody;
  error.name = name;
  error.message = message;
  return Object.defineProperty(error, 'extensions', { value: { reason } });
}
