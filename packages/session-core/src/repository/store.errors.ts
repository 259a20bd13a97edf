import { SessionStoreError } from '../errors/session.errors.js';

/** Calls a store. @throws SessionStoreError, whatever the store throws */
export async function wrapStoreErrors<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof SessionStoreError) throw error;
    throw new SessionStoreError(`The store failed: ${kindOf(error)}`, { cause: error });
  }
}

/** The kind of an error, without its message, which may quote a value. */
function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const { name, code } = error as NodeJS.ErrnoException;
  return code === undefined ? name : `${name} ${code}`;
}
