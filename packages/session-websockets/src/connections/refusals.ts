import { type RefusalBody, SessionStoreError } from '@nest-session/core';
import { logger, refusalBody, shownError, WarnOnce } from '@nest-session/core/internal';

/** Thrown for a client whose handshake presents the sessions of two users, with `security: 'strict'`. */
export class TwoPrincipalsError extends Error {}

/** What a client is told whose connection is refused. */
export type Refusal = RefusalBody | typeof FAILED;

const FAILED = { statusCode: 500, message: 'Internal server error' } as const;

/**
 * What a client is told whose session could not be looked up. Logs an error of the application's own code, such as of
 * the option `exclude`. An outage of the store is logged already, and two users are a security event.
 */
export function refusalAfter(error: unknown): Refusal {
  if (error instanceof SessionStoreError) return refusalBody('store-unavailable');
  if (error instanceof TwoPrincipalsError) return refusalBody('two-principals');
  logger.error(`A WebSocket was refused, because its session could not be looked up: ${shownError(error)}`);
  return FAILED;
}

export const JSON_HEADERS = { 'Content-Type': 'application/json' };

const log = new WarnOnce();

/** Tells that a page of another origin was refused where it is too late for a status, because of a changed version. */
export function tellOfLateRefusal(by: 'socket.io' | 'ws' | 'Node.js'): void {
  log.warn(
    by,
    `This version of ${by} passes over the first check of the origin, so pages of other origins are refused after it: ` +
      'install another version',
  );
}
