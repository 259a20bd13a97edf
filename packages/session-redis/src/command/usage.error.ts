/** Thrown when a command has to be called in another way. Its message is printed as it is. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
