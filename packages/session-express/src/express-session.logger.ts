import { OneLineLogger } from '@nest-session/core/internal';

export const logger = new OneLineLogger('ExpressSession');
const warned = new Set<string>();

/** Logs a sentence once in the process: it is about the code of the application, and not about a request. */
export function warnOnce(sentence: string): void {
  if (warned.has(sentence)) return;
  warned.add(sentence);
  logger.warn(sentence);
}
