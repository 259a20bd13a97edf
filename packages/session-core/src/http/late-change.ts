import { logger } from '../logging/session.logger.js';
import { requestFactsOf } from '../resolvers/request-facts.js';
import type { RequestSession } from './request-session.js';

/**
 * Warns of a change that was made after the end of the response and is not being saved. Returns whether it was lost.
 */
export async function reportLateChange({ existing, request }: RequestSession): Promise<boolean> {
  try {
    await existing?.saver.last;
  } catch {
    // The caller of `save()` has the error.
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
 * Warns of changes that were made after the headers were sent, unless they are being saved: the client may have left.
 */
export function reportUnsaved({ existing }: RequestSession, isUnsaved: () => boolean): void {
  const report = () => {
    if (isUnsaved()) logger.warn(`Changes of session ${existing?.shownId} are ${LOST}`);
  };
  Promise.resolve(existing?.saver.last).then(report, report);
}

const LOST =
  'lost: they were made after the headers were sent. Make them before the first byte, or call `await session.save()`';
