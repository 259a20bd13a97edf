import { SessionStoreError } from '@nest-session/core';
import { OneLineLogger, shownError } from '@nest-session/core/internal';

/**
 * The HTTP status for a client whose session could not be looked up. Logs an error of the application's own code, such
 * as of the option `exclude`. An outage of the store is logged already.
 */
export function statusAfter(error: unknown): 500 | 503 {
  if (error instanceof SessionStoreError) return 503;
  logger.error(`A WebSocket was refused, because its session could not be looked up: ${shownError(error)}`);
  return 500;
}

const logger = new OneLineLogger('Session');
