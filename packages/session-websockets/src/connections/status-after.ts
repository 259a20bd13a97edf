import { SessionStoreError } from '@nest-session/core';
import { OneLineLogger, shownError } from '@nest-session/core/internal';
import { TwoPrincipalsError } from './two-principals.error.js';

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

const logger = new OneLineLogger('Session');
