/** Resolves to what a function of express-session passes to its callback. */
export function called<T>(work: (done: (error?: unknown, value?: T) => void) => unknown): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    work((error, value) => (error ? reject(error as Error) : resolve(value)));
  });
}
