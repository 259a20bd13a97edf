import { SessionStoreError } from '../session.errors.js';

/** What a store answers. @throws SessionStoreError for whatever it throws */
export async function answerOf<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof SessionStoreError) throw error;
    throw new SessionStoreError(`The store failed: ${kindOf(error)}`, { cause: error });
  }
}

/** Not its message, which may quote what was to be stored. */
function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const { name, code } = error as NodeJS.ErrnoException;
  return code === undefined ? name : `${name} ${code}`;
}
