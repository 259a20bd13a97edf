import { OneLineLogger, shownError } from '@nest-session/core/internal';

let hasFailed = false;

/** Calls the SDK of the application. An error is logged, the first time, and harms nothing else. */
export function harmless<T>(call: () => T): T | undefined {
  try {
    return call();
  } catch (error) {
    if (!hasFailed) logger.error(`${FAILED}: ${shownError(error)}`);
    hasFailed = true;
    return undefined;
  }
}

const logger = new OneLineLogger('SessionTelemetry');

const FAILED =
  "OpenTelemetry's SDK failed, so measurements of sessions or spans are lost. Its later failures are not logged";
