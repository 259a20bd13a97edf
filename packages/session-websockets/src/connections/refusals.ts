import { SessionStoreError } from '@nest-session/core';
import { logger, shownError, WarnOnce } from '@nest-session/core/internal';

/** Thrown for a client whose handshake presents the sessions of two users, with `security: 'strict'`. */
export class TwoPrincipalsError extends Error {}

/**
 * The HTTP status for a client whose session could not be looked up. Logs an error of the application's own code, such
 * as of the option `exclude`. An outage of the store is logged already, and two users are a security event.
 */
export function statusAfter(error: unknown): 409 | 500 | 503 {
  if (error instanceof SessionStoreError) return 503;
  if (error instanceof TwoPrincipalsError) return 409;
  logger.error(`A WebSocket was refused, because its session could not be looked up: ${shownError(error)}`);
  return 500;
}

const log = new WarnOnce();

/** Tells that a page of another origin was refused where it is too late for a status, because of a changed version. */
export function tellOfLateRefusal(by: 'socket.io' | 'ws' | 'Node.js'): void {
  log.warn(
    by,
    `This version of ${by} passes over the first check of the origin, so pages of other origins are refused after it: ` +
      'install another version',
  );
}
