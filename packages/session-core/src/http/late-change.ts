import { logger } from '../logging/session.logger.js';
import { requestFactsOf } from '../resolvers/request-facts.js';
import type { RequestSession } from './request-session.js';

/** Warns of a change that was made after the end of the response and is not being saved. Returns whether it was lost. */
export async function reportLateChange({ existing, request }: RequestSession): Promise<boolean> {
  try {
    await existing?.saver.last;
  } catch {
    // Whoever called `save()` has the error.
    return false;
  }
  if (!existing?.isSet) return false;
  const { method, path } = requestFactsOf(request);
  logger.warn(
    `Session ${existing.shownId} was changed after the response to ${method} ${path} had ended, ` +
      'so the change is lost unless you call `await session.save()`. Is an `await` missing in the handler?',
  );
  return true;
}

/**
 * Warns of changes that were made after the headers were sent and not saved with `session.save()`. `isHandled`: the
 * handler had finished before that. Then only what was set is looked at: an encoding of each object that was read would
 * find nothing in almost every request.
 */
export function reportUnsaved(session: RequestSession, isHandled: boolean): void {
  if (!isUnsaved(session, isHandled)) return;
  const report = () => {
    if (isUnsaved(session, isHandled)) logger.warn(`Changes of session ${session.existing?.shownId} are ${LOST}`);
  };
  // The client may have left while the changes are being saved.
  Promise.resolve(session.existing?.saver.last).then(report, report);
}

function isUnsaved(session: RequestSession, isHandled: boolean): boolean {
  return isHandled ? !session.hasFailed && session.existing?.isSet === true : session.needsSave;
}

const LOST =
  'lost: they were made after the headers were sent. Make them before the first byte, or call `await session.save()`';
