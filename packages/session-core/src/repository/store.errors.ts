import { SessionStoreError } from '../errors/session.errors.js';

/** Calls a store. @throws SessionStoreError for any error that the store throws */
export function wrapStoreErrors<T>(call: () => Promise<T>): Promise<T> {
  try {
    return call().catch(raise);
  } catch (error) {
    return Promise.reject(storeError(error));
  }
}

function raise(error: unknown): never {
  throw storeError(error);
}

/** Turns an error of a store into a SessionStoreError. */
export function storeError(error: unknown): SessionStoreError {
  if (error instanceof SessionStoreError) return error;
  return new SessionStoreError(`The store failed: ${kindOf(error)}`, { cause: error });
}

/** Returns the name and code of an error, without its message, because the message may quote a value. */
function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const { name, code } = error as NodeJS.ErrnoException;
  return code === undefined ? name : `${name} ${code}`;
}
