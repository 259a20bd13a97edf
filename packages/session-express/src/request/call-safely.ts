import { OneLineLogger, shownStack } from '@nest-session/core/internal';

/** Calls a callback. What it throws, now or by a promise, would be an `unhandledRejection`, which ends the process. */
export function callSafely(callback: () => unknown, fail: (error: unknown) => void): void {
  try {
    const returned = callback();
    if (returned instanceof Promise) returned.catch(fail);
  } catch (error) {
    fail(error);
  }
}

/** Logs the error of a callback that decides no response. */
export function reportUntold(error: unknown): void {
  logger.error(UNTOLD, shownStack(error));
}

const logger = new OneLineLogger('ExpressSession');

const UNTOLD = 'A callback of req.session threw an error that no response tells any more';
